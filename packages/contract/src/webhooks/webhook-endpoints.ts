import { z } from 'zod'
import { PageQuery } from '../common/page.ts'
import { defineEndpoint } from '../endpoint.ts'
import {
  CreatedWebhook,
  RotatedWebhookSecret,
  testEventType,
  Webhook,
  WebhookCreateRequest,
  WebhookDelivery,
  WebhookDeliveryDetails,
  WebhookDeliveryStatus,
  WebhookEventType,
  WebhookRotateRequest,
  WebhookUpdateRequest,
} from './webhook.ts'

const tag = 'Webhooks'
const path = '/webhooks'
const OneWebhook = z.object({ id: z.string().min(1).max(255) })
const OneDelivery = OneWebhook.extend({ delivery_id: z.string().min(1).max(255) })

export const createWebhook = defineEndpoint({
  operationId: 'createWebhook',
  method: 'POST',
  path,
  summary: 'Create a webhook',
  description: 'Events of the project are sent to it, signed as Standard Webhooks defines.',
  tag,
  access: 'project',
  body: WebhookCreateRequest,
  reply: CreatedWebhook,
  status: 201,
  errors: ['webhook_limit_reached'],
})

export const listWebhooks = defineEndpoint({
  operationId: 'listWebhooks',
  method: 'GET',
  path,
  summary: 'List webhooks',
  description: 'Newest first.',
  tag,
  access: 'project',
  query: PageQuery,
  reply: z.array(Webhook),
  paged: true,
  status: 200,
  errors: [],
})

export const getWebhook = defineEndpoint({
  operationId: 'getWebhook',
  method: 'GET',
  path: `${path}/{id}`,
  summary: 'Get a webhook',
  tag,
  access: 'project',
  params: OneWebhook,
  reply: Webhook,
  status: 200,
  errors: ['webhook_not_found'],
})

export const updateWebhook = defineEndpoint({
  operationId: 'updateWebhook',
  method: 'PATCH',
  path: `${path}/{id}`,
  summary: 'Change a webhook',
  description: 'Absent fields stay unchanged.',
  tag,
  access: 'project',
  params: OneWebhook,
  body: WebhookUpdateRequest,
  reply: Webhook,
  status: 200,
  errors: ['webhook_not_found'],
})

export const deleteWebhook = defineEndpoint({
  operationId: 'deleteWebhook',
  method: 'DELETE',
  path: `${path}/{id}`,
  summary: 'Delete a webhook',
  description: 'Also deletes its deliveries.',
  tag,
  access: 'project',
  params: OneWebhook,
  status: 204,
  errors: ['webhook_not_found'],
})

export const rotateWebhookSecret = defineEndpoint({
  operationId: 'rotateWebhookSecret',
  method: 'POST',
  path: `${path}/{id}/rotate_secret`,
  summary: 'Rotate the secret of a webhook',
  tag,
  access: 'project',
  params: OneWebhook,
  body: WebhookRotateRequest,
  reply: RotatedWebhookSecret,
  status: 200,
  errors: ['webhook_not_found'],
})

export const testWebhook = defineEndpoint({
  operationId: 'testWebhook',
  method: 'POST',
  path: `${path}/{id}/test`,
  summary: 'Send a test delivery',
  description: `Sends ${testEventType} once, also while the webhook is disabled. Read the delivery to see its outcome.`,
  tag,
  access: 'project',
  params: OneWebhook,
  reply: WebhookDelivery,
  status: 202,
  errors: ['webhook_not_found', 'webhook_backlog_full'],
})

export const listWebhookDeliveries = defineEndpoint({
  operationId: 'listWebhookDeliveries',
  method: 'GET',
  path: `${path}/{id}/deliveries`,
  summary: 'List the deliveries of a webhook',
  description: 'Newest first.',
  tag,
  access: 'project',
  params: OneWebhook,
  query: PageQuery.extend({
    status: WebhookDeliveryStatus.optional(),
    event_type: z.enum([...WebhookEventType.options, testEventType]).optional(),
  }),
  reply: z.array(WebhookDelivery),
  paged: true,
  status: 200,
  errors: ['webhook_not_found'],
})

export const getWebhookDelivery = defineEndpoint({
  operationId: 'getWebhookDelivery',
  method: 'GET',
  path: `${path}/{id}/deliveries/{delivery_id}`,
  summary: 'Get a delivery with its payload and attempts',
  tag,
  access: 'project',
  params: OneDelivery,
  reply: WebhookDeliveryDetails,
  status: 200,
  errors: ['webhook_not_found', 'webhook_delivery_not_found'],
})

export const redeliverWebhook = defineEndpoint({
  operationId: 'redeliverWebhook',
  method: 'POST',
  path: `${path}/{id}/deliveries/{delivery_id}/redeliver`,
  summary: 'Deliver an event again',
  description: 'Creates a new delivery with the same event id and payload.',
  tag,
  access: 'project',
  params: OneDelivery,
  reply: WebhookDelivery,
  status: 202,
  errors: ['webhook_not_found', 'webhook_delivery_not_found', 'webhook_disabled', 'webhook_backlog_full'],
})
