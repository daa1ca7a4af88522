import type { WebhookAttempt } from '@berth/contract/webhooks/webhook.ts'
import { testEventType } from '@berth/contract/webhooks/webhook.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { within } from '@berth/runtime/async/deadline.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { OutboundGuard } from '../../outbound/outbound-guard.ts'
import { type AttemptResult, deliverWebhook } from './deliver-webhook.ts'
import type { ClaimedDelivery, DeliveryStore, Outcome } from './delivery-store.ts'
import type { WebhookSecrets } from './webhook-secrets.ts'

/** The pauses after the first attempt, the second, and so on. The attempt after the last pause is final. */
export const retryPausesSeconds = [5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600, 43_200] as const
/** Spreads the attempts for simultaneous events. */
const jitter = 0.2
const maxAtOnce = 100
const perOrganization = 12
const perWebhook = 4
const usualAttemptLimitMilliseconds = 15_000
/** Longer than an attempt and the write of its result to a slow database. */
const leaseSeconds = 60
const failingLimitDays = 5
const closeLimitMilliseconds = 2_000
const gone = 410

interface WebhookDelivererOptions {
  readonly store: DeliveryStore
  readonly secrets: WebhookSecrets
  readonly guard: OutboundGuard
  readonly clock: Clock
  readonly logger: Logger
  readonly version: string
  readonly attemptLimitMilliseconds?: number | undefined
}

/**
 * Delivers pending deliveries. Their rows are the queue, because triggers insert them in the transaction of the event,
 * which cannot enqueue jobs. All servers claim deliveries, and each is claimed by one. No database connection is held
 * while an endpoint responds.
 */
export class WebhookDeliverer {
  readonly #options: WebhookDelivererOptions
  readonly #closing = new AbortController()
  readonly #running = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> | undefined
  #isDueAgain = false

  constructor(options: WebhookDelivererOptions) {
    this.#options = options
  }

  async start(intervalMilliseconds: number): Promise<void> {
    await this.#options.store.forgetOwnClaims()
    this.#timer = setInterval(() => void this.#tick(), intervalMilliseconds)
  }

  /** Aborts attempts in progress. Another server, or the next start, repeats them. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#closing.abort()
    const ended = Promise.allSettled([this.#round, ...this.#running])
    await within(closeLimitMilliseconds, ended).catch(() => {}) // Its lease expires anyway.
  }

  /** Delivers what is due, including deliveries that become due by that, and waits for all of it. */
  async run(): Promise<void> {
    await this.#tick()
    while (this.#running.size > 0) {
      await Promise.all(this.#running)
      await this.#round
    }
  }

  /** One claim at a time. */
  #tick(): Promise<void> {
    this.#isDueAgain = true
    this.#round ??= Promise.resolve().then(() => this.#claimAll())
    return this.#round
  }

  async #claimAll(): Promise<void> {
    const { store, logger } = this.#options
    try {
      while (this.#isDueAgain && !this.#closing.signal.aborted && this.#running.size < maxAtOnce) {
        this.#isDueAgain = false
        const total = maxAtOnce - this.#running.size
        const claimed = await store.claim({ total, perOrganization, perWebhook, leaseSeconds })
        for (const delivery of claimed) this.#begin(delivery)
      }
    } catch (error) {
      logger.warn({ reason: (error as Error).message }, 'could not claim webhook deliveries; retrying')
    } finally {
      // Synchronous: a call after the last check starts another round.
      this.#round = undefined
    }
  }

  #begin(delivery: ClaimedDelivery): void {
    const { logger } = this.#options
    const done: Promise<void> = this.#deliver(delivery)
      .catch((error: unknown) =>
        logger.warn(
          { err: error, deliveryId: delivery.id },
          'could not store the result of a webhook delivery; it is sent again',
        ),
      )
      .finally(() => {
        this.#running.delete(done)
        // There is a slot for the next one.
        if (!this.#closing.signal.aborted) void this.#tick()
      })
    this.#running.add(done)
  }

  async #deliver(delivery: ClaimedDelivery): Promise<void> {
    const { store, clock } = this.#options
    let result: AttemptResult
    try {
      result = await this.#attempt(delivery)
    } catch {
      return store.release(delivery)
    }
    const outcome = outcomeOf(delivery, result)
    await store.finish(delivery, result.record, outcome, { now: clock.now(), failingLimitDays })
  }

  async #attempt(delivery: ClaimedDelivery): Promise<AttemptResult> {
    const { secrets, guard, clock, version } = this.#options
    const { attemptLimitMilliseconds = usualAttemptLimitMilliseconds } = this.#options
    const at = clock.now()
    const { url, event_id: eventId, payload } = delivery
    const attempt = { url, eventId, payload, secrets: await secrets.validAt(delivery, at) }
    return deliverWebhook(attempt, {
      guard,
      limitMilliseconds: attemptLimitMilliseconds,
      userAgent: `berth-webhooks/${version}`,
      at,
      signal: this.#closing.signal,
    })
  }
}

function outcomeOf({ event_type, attempt_count }: ClaimedDelivery, { record, pauseSeconds }: AttemptResult): Outcome {
  if (isSuccess(record)) return { kind: 'succeeded' }
  const pause = event_type === testEventType ? undefined : retryPausesSeconds[attempt_count - 1]
  const isGone = record.response_status === gone
  if (pause === undefined || isGone) return { kind: 'failed', retrySeconds: null, isGone }
  const spread = pause * (1 + Math.random() * jitter)
  return { kind: 'failed', retrySeconds: Math.max(spread, pauseSeconds ?? 0), isGone }
}

function isSuccess({ error }: WebhookAttempt): boolean {
  return error === undefined
}
