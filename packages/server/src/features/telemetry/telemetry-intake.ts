import { setTimeout as delay } from 'node:timers/promises'
import {
  type AgentTelemetryRecord,
  acknowledgeAgentTelemetry,
  followAgentTelemetry,
} from '@berth/contract/agent/agent-endpoints.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { eventCategories } from '@berth/contract/telemetry/event-types.ts'
import type { TelemetryEnvelope, TelemetryEvent } from '@berth/contract/telemetry/telemetry-event.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { within } from '@berth/runtime/async/deadline.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { AgentEventReader, type RecordStream } from '../../agent-link/agent-event-reader.ts'
import { EventRateLimiter } from '../../agent-link/event-rate-limiter.ts'
import type { ReachableMachine } from '../../drivers/driver.ts'
import { TelemetryFeed } from './telemetry-feed.ts'
import type { TelemetryRow, TelemetryStore } from './telemetry-store.ts'
import type { TelemetryWriter } from './telemetry-writer.ts'

/** A session may send a thousand events and one megabyte per second. Faster ones wait in its machine. */
const eventCost = 0.1
const charactersPerCredit = 10_000
/** Twice the size to which an agent truncates events. */
const maxEventLength = 1024 * 1024

/**
 * Every acknowledgement opens a connection to the agent, which costs the pages processor time. So batches share one, unless the
 * agent would have to keep too much.
 */
const acknowledgePauseMilliseconds = 500
const maxUnacknowledgedLength = 1024 * 1024

const firstPauseMilliseconds = 100
const longestPauseMilliseconds = 5_000
/** The time for the last events of a session, which delays its end. */
const finalReadMilliseconds = 3_000
/** The time for which writes are retried after the end of the session if the database is unavailable. */
const lastWriteMilliseconds = 60_000

/** `events` is a function because most listeners do not need the events of a given session. */
export type StoredListener = (sessionId: SessionId, events: () => readonly TelemetryEnvelope[]) => void

interface TelemetryIntakeOptions {
  readonly sessionId: SessionId
  readonly machine: ReachableMachine
  readonly store: TelemetryStore
  readonly writer: TelemetryWriter
  /** Called after events are stored. */
  readonly onStored: StoredListener
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Receives the telemetry of one session from its agent. Events are acknowledged when they are stored, so events that a
 * killed server had not stored are sent again.
 */
export class TelemetryIntake {
  readonly #options: TelemetryIntakeOptions
  readonly #abort = new AbortController()
  readonly #opened = Promise.withResolvers<TelemetryFeed>()
  #reader: AgentEventReader<AgentTelemetryRecord> | undefined
  readonly #running: Promise<void>
  /** The last of the stored events. */
  #stored = 0
  #unacknowledgedLength = 0
  #acknowledgeTimer: NodeJS.Timeout | undefined
  #isFinishing = false

  constructor(options: TelemetryIntakeOptions) {
    this.#options = options
    this.#running = this.#run()
  }

  /** Resolves when the number of the last stored event is known. */
  get feed(): Promise<TelemetryFeed> {
    return this.#opened.promise
  }

  /** Receives and stores the remaining events of an agent that has ended. */
  async finish(): Promise<void> {
    this.#isFinishing = true
    await this.#reader?.finish()
    const limit = setTimeout(() => this.close(), lastWriteMilliseconds)
    const stored = this.#flushed().finally(() => {
      clearTimeout(limit)
      this.close()
    })
    await within(finalReadMilliseconds, stored).catch(() => {}) // It continues while the session ends.
  }

  close(): void {
    this.#abort.abort()
    clearTimeout(this.#acknowledgeTimer)
    this.#reader?.close()
    void this.#opened.promise.then((feed) => feed.end())
  }

  async #run(): Promise<void> {
    const { sessionId, machine, store } = this.#options
    const { signal } = this.#abort
    const last = await this.#persist(() => store.lastSequence(sessionId))
    if (last === undefined) {
      // The session ended before the database was available: readers get no events.
      const none = new TelemetryFeed(0, async () => [])
      none.end()
      this.#opened.resolve(none)
      return
    }
    const feed = new TelemetryFeed(last, (after, before, limit) => store.between(sessionId, after, before, limit))
    this.#opened.resolve(feed)
    if (signal.aborted) return feed.end()
    const stream = {
      follow: followAgentTelemetry,
      acknowledge: acknowledgeAgentTelemetry,
      acknowledgesTaken: false,
      maxEventLength,
      // A new agent has no event with this number.
      after: last === 0 ? undefined : last,
    } as unknown as RecordStream<AgentTelemetryRecord>
    const pace = new EventRateLimiter(eventCost, charactersPerCredit)
    this.#reader = new AgentEventReader(machine, (record) => this.#take(feed, record), { stream, pace })
    if (this.#isFinishing) await this.#reader.finish()
    await this.#write(feed)
  }

  async #take(feed: TelemetryFeed, record: AgentTelemetryRecord): Promise<void> {
    while (!feed.hasRoom && !this.#abort.signal.aborted) await feed.change(this.#abort.signal)
    const now = this.#options.clock.now()
    const event = 'lost' in record ? lossOf(record.lost, now) : record.event
    // The agent may be compromised, so the category is not taken from it.
    const envelope = { seq: record.sequence, event: { ...event, category: eventCategories[event.type] } }
    feed.append(envelope, {
      session_id: this.#options.sessionId,
      seq: record.sequence,
      recorded_at: now,
      category: envelope.event.category,
      type: event.type,
      event: JSON.stringify(envelope.event),
    })
  }

  async #write(feed: TelemetryFeed): Promise<void> {
    const { writer, sessionId, onStored } = this.#options
    const { signal } = this.#abort
    while (!signal.aborted) {
      const rows = feed.unstored()
      if (rows.length === 0) await feed.change(signal)
      else if ((await this.#persist(() => writer.write(rows).then(() => true))) === true) {
        feed.markStored(rows)
        this.#acknowledge(rows)
        onStored(sessionId, () => rows.map(({ seq, event }) => ({ seq, event: JSON.parse(event) as TelemetryEvent })))
      }
    }
  }

  #acknowledge(stored: readonly TelemetryRow[]): void {
    const last = stored.at(-1)
    if (!last) return
    this.#stored = last.seq
    this.#unacknowledgedLength += stored.reduce((sum, { event }) => sum + event.length, 0)
    const send = () => {
      clearTimeout(this.#acknowledgeTimer)
      this.#acknowledgeTimer = undefined
      this.#unacknowledgedLength = 0
      this.#reader?.acknowledge(this.#stored)
    }
    if (this.#unacknowledgedLength >= maxUnacknowledgedLength) send()
    else this.#acknowledgeTimer ??= setTimeout(send, acknowledgePauseMilliseconds).unref()
  }

  /** Resolves when all events are stored. */
  async #flushed(): Promise<void> {
    const feed = await Promise.race([this.#opened.promise, this.#running.then(() => undefined)])
    while (feed && feed.unstored().length > 0 && !this.#abort.signal.aborted) await feed.change(this.#abort.signal)
  }

  /** Retries until it succeeds. Undefined after the time limit. */
  async #persist<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
    const { signal } = this.#abort
    let isReported = false
    for (let pause = firstPauseMilliseconds; !signal.aborted; pause = Math.min(pause * 2, longestPauseMilliseconds)) {
      try {
        return await work()
      } catch (error) {
        const { sessionId, logger } = this.#options
        if (!isReported)
          logger.warn({ sessionId, reason: (error as Error).message }, 'telemetry waits for the database')
        isReported = true
        await delay(pause, undefined, { signal }).catch(() => {})
      }
    }
    return undefined
  }
}

function lossOf(count: number, now: Date): TelemetryEvent {
  return {
    ts: now.getTime() * 1000,
    type: 'monitor_events_lost',
    category: 'monitor',
    source: { kind: 'local_process' },
    data: { count },
  }
}
