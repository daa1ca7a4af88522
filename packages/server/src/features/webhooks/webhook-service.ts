import { newId, type ProjectId, type WebhookDeliveryId, type WebhookId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import {
  testEventType,
  type WebhookCreateRequest,
  type WebhookUpdateRequest,
} from '@berth/contract/webhooks/webhook.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { OutboundGuard } from '../../outbound/outbound-guard.ts'
import type { DeliveryFilter, DeliveryStore, StoredDelivery } from './delivery-store.ts'
import type { WebhookSecrets } from './webhook-secrets.ts'
import type { StoredWebhook, WebhookStore } from './webhook-store.ts'

const maxWebhooks = 20
/** No test or redelivery is accepted while this many deliveries are pending. */
const maxRequested = 1_000
/** The limit of pending deliveries, beyond which an endpoint will not catch up. */
const maxPending = 10_000
const removedAtOnce = 5_000

interface WebhookServiceOptions {
  readonly store: WebhookStore
  readonly deliveries: DeliveryStore
  readonly secrets: WebhookSecrets
  readonly guard: OutboundGuard
  readonly retentionDays: number
  readonly clock: Clock
  readonly logger: Logger
}

/** The rules of webhooks, and their delivery log. */
export class WebhookService {
  readonly #options: WebhookServiceOptions

  constructor(options: WebhookServiceOptions) {
    this.#options = options
  }

  async create(
    projectId: ProjectId,
    { url, description, event_types }: WebhookCreateRequest,
  ): Promise<{ readonly webhook: StoredWebhook; readonly secret: string }> {
    this.#requirePublic(url)
    const { store, secrets, clock } = this.#options
    const now = clock.now()
    const id = newId('webhook', now)
    const { secret, sealed } = await secrets.create(projectId, id)
    const row = { id, project_id: projectId, url, description: description || null, event_types }
    const webhook = await store.insert({ ...row, sealed_secret: sealed, created_at: now, updated_at: now }, maxWebhooks)
    if (!webhook) throw new BerthError('webhook_limit_reached', { limit: maxWebhooks })
    return { webhook, secret }
  }

  async list(projectId: ProjectId, page: PageRequest): Promise<Page<StoredWebhook>> {
    return this.#options.store.list(projectId, page)
  }

  async get(projectId: ProjectId, id: string): Promise<StoredWebhook> {
    return found(await this.#options.store.find(projectId, id), id)
  }

  async update(
    projectId: ProjectId,
    id: string,
    { url, description, event_types, enabled }: WebhookUpdateRequest,
  ): Promise<StoredWebhook> {
    if (url !== undefined) this.#requirePublic(url)
    const change = {
      ...(url !== undefined && { url }),
      ...(description !== undefined && { description: description || null }),
      ...(event_types !== undefined && { event_types }),
      ...(enabled !== undefined && { isEnabled: enabled }),
    }
    const { store, clock } = this.#options
    return found(await store.update(projectId, id, change, clock.now()), id)
  }

  async delete(projectId: ProjectId, id: string): Promise<void> {
    if (!(await this.#options.store.delete(projectId, id))) throw new BerthError('webhook_not_found', { webhook: id })
  }

  async rotateSecret(
    projectId: ProjectId,
    id: string,
    overlapSeconds: number,
  ): Promise<{ readonly secret: string; readonly previousUntil: Date }> {
    const { store, secrets, clock } = this.#options
    const { secret, sealed } = await secrets.create(projectId, id as WebhookId)
    const now = clock.now()
    const previousUntil = new Date(now.getTime() + overlapSeconds * 1000)
    found(await store.rotate(projectId, id, sealed, now, previousUntil), id)
    return { secret, previousUntil }
  }

  /** Sends a test event. Its result does not affect the health of the webhook. */
  async test(projectId: ProjectId, id: string): Promise<StoredDelivery> {
    const webhook = await this.get(projectId, id)
    const now = this.#options.clock.now()
    const data = { webhook_id: webhook.id, project_id: projectId }
    return this.#enqueue(webhook, {
      eventId: `evt_${crypto.randomUUID().replaceAll('-', '')}`,
      eventType: testEventType,
      payload: JSON.stringify({ type: testEventType, timestamp: now.toISOString(), data }),
    })
  }

  async listDeliveries(
    projectId: ProjectId,
    id: string,
    filter: DeliveryFilter,
    page: PageRequest,
  ): Promise<Page<StoredDelivery>> {
    const webhook = await this.get(projectId, id)
    return this.#options.deliveries.list(webhook.id, filter, page)
  }

  async getDelivery(projectId: ProjectId, id: string, deliveryId: string): Promise<StoredDelivery> {
    const webhook = await this.get(projectId, id)
    const delivery = await this.#options.deliveries.find(webhook.id, deliveryId)
    if (!delivery) throw new BerthError('webhook_delivery_not_found', { delivery: deliveryId })
    return delivery
  }

  async redeliver(projectId: ProjectId, id: string, deliveryId: string): Promise<StoredDelivery> {
    const webhook = await this.get(projectId, id)
    const delivery = await this.getDelivery(projectId, id, deliveryId)
    if (!webhook.is_enabled) throw new BerthError('webhook_disabled')
    const { event_id: eventId, event_type: eventType, payload, redelivery_of } = delivery
    const redeliveryOf = (redelivery_of ?? delivery.id) as WebhookDeliveryId
    return this.#enqueue(webhook, { eventId, eventType, payload, redeliveryOf })
  }

  async #enqueue(
    { id: webhookId }: StoredWebhook,
    event: Pick<StoredDelivery, 'payload'> & {
      readonly eventId: string
      readonly eventType: string
      readonly redeliveryOf?: WebhookDeliveryId
    },
  ): Promise<StoredDelivery> {
    const { deliveries, clock } = this.#options
    const id = newId('webhook-delivery', clock.now())
    const delivery = await deliveries.insert({ id, webhookId, ...event }, maxRequested)
    if (!delivery) throw new BerthError('webhook_backlog_full', { limit: maxRequested })
    return delivery
  }

  /** Removes old deliveries, and disables webhooks with too many pending ones. */
  async tend(signal?: AbortSignal): Promise<void> {
    const { store, deliveries, retentionDays, clock, logger } = this.#options
    const now = clock.now()
    for (const id of await store.disableOverfull(maxPending, now)) {
      logger.warn({ webhookId: id }, 'a webhook was disabled: it has too many pending deliveries')
    }
    await store.cancelOfDisabled()
    const before = new Date(now.getTime() - retentionDays * 86_400_000)
    while ((await deliveries.removeOld(before, removedAtOnce)) === removedAtOnce) signal?.throwIfAborted()
  }

  #requirePublic(url: string): void {
    const refusal = this.#options.guard.refusalOf(url)
    if (refusal) throw new BerthError('invalid_input', { reason: `url: ${refusal}.` })
  }
}

function found(webhook: StoredWebhook | undefined, id: string): StoredWebhook {
  if (!webhook) throw new BerthError('webhook_not_found', { webhook: id })
  return webhook
}
