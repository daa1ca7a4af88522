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
import { deliveryDetails, deliveryRecord, webhookRecord } from './webhook-record.ts'
import type { WebhookService } from './webhook-service.ts'

export function mountWebhookRoutes(mount: MountForCallers, { webhooks }: { readonly webhooks: WebhookService }): void {
  mount(createWebhook, async ({ caller, body }) => {
    const { webhook, secret } = await webhooks.create(caller.projectId, body)
    return { ...webhookRecord(webhook), secret }
  })

  mount(listWebhooks, async ({ caller, query }) => {
    const page = await webhooks.list(caller.projectId, query)
    return { items: page.items.map(webhookRecord), hasMore: page.hasMore }
  })

  mount(getWebhook, async ({ caller, params }) => webhookRecord(await webhooks.get(caller.projectId, params.id)))

  mount(updateWebhook, async ({ caller, params, body }) =>
    webhookRecord(await webhooks.update(caller.projectId, params.id, body)),
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
