import { z } from 'zod'
import { Timestamp } from '../common/time.ts'

const maxUrlLength = 2048

/** The events that a webhook can receive. Database triggers write all of them except the test event. */
export const WebhookEventType = z
  .enum([
    'session.created',
    'session.acquired',
    'session.released',
    'session.ended',
    'session.service_crashed',
    'replay.started',
    'replay.finished',
    'replay.failed',
    'profile.saved',
    'deployment.running',
    'deployment.failed',
    'deployment.stopped',
    'invocation.succeeded',
    'invocation.failed',
  ])
  .meta({ id: 'WebhookEventType' })
export type WebhookEventType = z.infer<typeof WebhookEventType>

export const testEventType = 'webhook.test'

const WebhookUrl = z
  .string()
  .max(maxUrlLength)
  .refine((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), {
    error: 'must be a URL with http or https',
    abort: true,
  })
  .refine((text) => !text.includes('#'), { error: 'must have no fragment' })
  .refine((text) => new URL(text).username === '' && new URL(text).password === '', {
    error: 'must have no user name and no password; verify the signature instead',
  })

const EventTypes = z
  .array(WebhookEventType)
  .min(1)
  .transform((types) => [...new Set(types)])
  .nullable()

const Description = z.string().max(1024)

export const WebhookDisabledReason = z.enum(['requested', 'gone', 'failing', 'backlog'])
export type WebhookDisabledReason = z.infer<typeof WebhookDisabledReason>

export const Webhook = z
  .object({
    id: z.string(),
    url: z.string(),
    description: z.string().optional(),
    event_types: z
      .array(WebhookEventType)
      .nullable()
      .meta({ description: 'Null: every event, including future types.' }),
    enabled: z.boolean(),
    disabled_reason: WebhookDisabledReason.optional().meta({
      description:
        'requested: by an update. gone: the endpoint responded with 410. failing: no delivery succeeded for five days. backlog: too many deliveries were pending.',
    }),
    disabled_at: Timestamp.optional(),
    failing_since: Timestamp.optional().meta({ description: 'Set if the last attempt failed.' }),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'Webhook' })
export type Webhook = z.infer<typeof Webhook>

const Secret = z.string().meta({ description: 'Signs the deliveries. It is returned only here.' })

export const CreatedWebhook = Webhook.extend({ secret: Secret }).meta({ id: 'CreatedWebhook' })

export const WebhookCreateRequest = z.object({
  url: WebhookUrl.meta({ description: 'Receives a POST for each event. Must have a public address.' }),
  description: Description.optional(),
  event_types: EventTypes.default(null).meta({ description: 'Absent or null: every event.' }),
})
export type WebhookCreateRequest = z.output<typeof WebhookCreateRequest>

export const WebhookUpdateRequest = z.object({
  url: WebhookUrl.optional(),
  description: Description.optional().meta({ description: 'An empty text removes it.' }),
  event_types: EventTypes.optional().meta({ description: 'Null: every event.' }),
  enabled: z.boolean().optional().meta({
    description: 'False cancels pending deliveries. Events that occur while it is false are not delivered.',
  }),
})
export type WebhookUpdateRequest = z.output<typeof WebhookUpdateRequest>

const maxOverlapSeconds = 7 * 24 * 60 * 60

export const WebhookRotateRequest = z
  .object({
    overlap_seconds: z
      .int()
      .min(0)
      .max(maxOverlapSeconds)
      .default(24 * 60 * 60)
      .meta({ description: 'How long deliveries are also signed with the previous secret.' }),
  })
  .default({ overlap_seconds: 24 * 60 * 60 })

export const RotatedWebhookSecret = z
  .object({ secret: Secret, previous_secret_expires_at: Timestamp })
  .meta({ id: 'RotatedWebhookSecret' })

export const WebhookDeliveryStatus = z.enum(['pending', 'succeeded', 'failed', 'canceled'])
export type WebhookDeliveryStatus = z.infer<typeof WebhookDeliveryStatus>

const attemptOutcome = {
  response_status: z.int().optional().meta({ description: 'Absent if there was no response.' }),
  duration_ms: z.int().optional(),
  error: z.string().optional(),
}

export const WebhookAttempt = z
  .object({
    at: Timestamp,
    ...attemptOutcome,
    response_body: z.string().optional().meta({ description: 'Its first 1,000 characters.' }),
  })
  .meta({ id: 'WebhookAttempt' })
export type WebhookAttempt = z.infer<typeof WebhookAttempt>

export const WebhookDelivery = z
  .object({
    id: z.string(),
    webhook_id: z.string(),
    event_id: z.string().meta({ description: 'The header webhook-id: the same for every attempt and redelivery.' }),
    event_type: z.string(),
    status: WebhookDeliveryStatus,
    attempt_count: z.int(),
    next_attempt_at: Timestamp.optional().meta({ description: 'Set for a pending delivery.' }),
    ...attemptOutcome,
    redelivery_of: z.string().optional(),
    created_at: Timestamp,
  })
  .meta({ id: 'WebhookDelivery', description: 'Status, duration and error are those of the last attempt.' })
export type WebhookDelivery = z.infer<typeof WebhookDelivery>

export const WebhookDeliveryDetails = WebhookDelivery.extend({
  payload: z.record(z.string(), z.unknown()).meta({ description: 'The request body.' }),
  attempts: z.array(WebhookAttempt).meta({ description: 'Oldest first.' }),
}).meta({ id: 'WebhookDeliveryDetails' })
export type WebhookDeliveryDetails = z.infer<typeof WebhookDeliveryDetails>
