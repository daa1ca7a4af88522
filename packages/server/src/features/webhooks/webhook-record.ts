import type { Webhook, WebhookDelivery, WebhookDeliveryDetails } from '@berth/contract/webhooks/webhook.ts'
import type { StoredDelivery } from './delivery-store.ts'
import type { StoredWebhook } from './webhook-store.ts'

/** Formats a webhook for callers, without its secret. */
export function webhookRecord(webhook: StoredWebhook): Webhook {
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

export function deliveryRecord(delivery: StoredDelivery): WebhookDelivery {
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

export function deliveryDetails(delivery: StoredDelivery): WebhookDeliveryDetails {
  return { ...deliveryRecord(delivery), payload: JSON.parse(delivery.payload), attempts: [...delivery.attempts] }
}
