import type { Webhook, WebhookDelivery, WebhookDeliveryDetails } from '@berth/contract/webhooks/webhook.ts'
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  getWebhookDelivery,
  listWebhookDeliveries,
  listWebhooks,
  redeliverWebhook,
  rotateWebhookSecret,
  testWebhook,
  updateWebhook,
} from '@berth/contract/webhooks/webhook-endpoints.ts'
import type { MountForCallers } from '../../access/mount-for-callers.ts'
import type { StoredDelivery } from './delivery-store.ts'
import type { WebhookService } from './webhook-service.ts'
import type { StoredWebhook } from './webhook-store.ts'

export function mountWebhookRoutes(mount: MountForCallers, { webhooks }: { readonly webhooks: WebhookService }): void {
  mount(createWebhook, async ({ caller, body }) => {
    const { webhook, secret } = await webhooks.create(caller.projectId, body)
    return { ...record(webhook), secret }
  })

  mount(listWebhooks, async ({ caller, query }) => {
    const page = await webhooks.list(caller.projectId, query)
    return { items: page.items.map(record), hasMore: page.hasMore }
  })

  mount(getWebhook, async ({ caller, params }) => record(await webhooks.get(caller.projectId, params.id)))

  mount(updateWebhook, async ({ caller, params, body }) =>
    record(await webhooks.update(caller.projectId, params.id, body)),
  )

  mount(deleteWebhook, ({ caller, params }) => webhooks.delete(caller.projectId, params.id))

  mount(rotateWebhookSecret, async ({ caller, params, body }) => {
    const { secret, previousUntil } = await webhooks.rotateSecret(caller.projectId, params.id, body.overlap_seconds)
    return { secret, previous_secret_expires_at: previousUntil.toISOString() }
  })

  mount(testWebhook, async ({ caller, params }) => deliveryRecord(await webhooks.test(caller.projectId, params.id)))

  mount(listWebhookDeliveries, async ({ caller, params, query }) => {
    const filter = { status: query.status, eventType: query.event_type }
    const page = await webhooks.listDeliveries(caller.projectId, params.id, filter, query)
    return { items: page.items.map(deliveryRecord), hasMore: page.hasMore }
  })

  mount(getWebhookDelivery, async ({ caller, params }) =>
    deliveryDetails(await webhooks.getDelivery(caller.projectId, params.id, params.delivery_id)),
  )

  mount(redeliverWebhook, async ({ caller, params }) =>
    deliveryRecord(await webhooks.redeliver(caller.projectId, params.id, params.delivery_id)),
  )
}

/** The secret is never told again. */
function record(webhook: StoredWebhook): Webhook {
  const { id, url, description, event_types, is_enabled, disabled_reason, disabled_at, failing_since } = webhook
  return {
    id,
    url,
    ...(description !== null && { description }),
    event_types: event_types && [...event_types],
    enabled: is_enabled,
    ...(disabled_reason && { disabled_reason }),
    ...(disabled_at && { disabled_at: disabled_at.toISOString() }),
    ...(failing_since && { failing_since: failing_since.toISOString() }),
    created_at: webhook.created_at.toISOString(),
    updated_at: webhook.updated_at.toISOString(),
  }
}

function deliveryRecord(delivery: StoredDelivery): WebhookDelivery {
  const { id, webhook_id, event_id, event_type, status, attempt_count, next_attempt_at, attempts } = delivery
  const last = attempts.at(-1)
  return {
    id,
    webhook_id,
    event_id,
    event_type,
    status,
    attempt_count,
    ...(status === 'pending' && { next_attempt_at: next_attempt_at.toISOString() }),
    ...(last?.response_status !== undefined && { response_status: last.response_status }),
    ...(last?.duration_ms !== undefined && { duration_ms: last.duration_ms }),
    ...(last?.error !== undefined && { error: last.error }),
    ...(delivery.redelivery_of !== null && { redelivery_of: delivery.redelivery_of }),
    created_at: delivery.created_at.toISOString(),
  }
}

function deliveryDetails(delivery: StoredDelivery): WebhookDeliveryDetails {
  return { ...deliveryRecord(delivery), payload: JSON.parse(delivery.payload), attempts: [...delivery.attempts] }
}
