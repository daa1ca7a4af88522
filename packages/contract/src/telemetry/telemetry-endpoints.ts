import { z } from 'zod'
import { IdOrName } from '../common/ids.ts'
import { defaultPageLimit, maxPageLimit } from '../common/page.ts'
import { defineEndpoint } from '../endpoint.ts'
import { defineStream } from '../stream.ts'
import { TelemetryCategory, TelemetryEnvelope, TelemetryType } from './telemetry-event.ts'

const tag = 'Browser Telemetry'

/** One value, several separated by commas, or a repeated parameter. */
const listOf = <Item extends z.ZodEnum>(item: Item) =>
  z
    .preprocess(
      (value) => (value === undefined ? undefined : [value].flat().flatMap((text) => String(text).split(','))),
      z.array(item).max(100).optional(),
    )
    .meta({ override: { type: 'array', items: { type: 'string', enum: item.options } } })

/** Also served below the session's `base_url`, for holders of its token. */
export const streamTelemetry = defineEndpoint(
  defineStream({
    operationId: 'streamTelemetry',
    path: '/browsers/{id_or_name}/telemetry/stream',
    summary: 'Stream telemetry events of a session',
    description:
      'Each event has its `seq` as its id. The header `Last-Event-ID` resumes after that event. The stream ends with the session.',
    tag,
    access: 'project',
    params: z.object({ id_or_name: IdOrName }),
    query: z.object({
      replay: z.string().optional().meta({ description: '`all` starts at the oldest stored event.' }),
      type: listOf(TelemetryType),
    }),
    event: TelemetryEnvelope,
    errors: ['session_not_found', 'session_unreachable'],
  }),
)

const secondsOfUnit: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400 }
const durationPattern = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/
const timeRule = 'must be a time such as 2026-01-31T12:00:00Z or a duration such as 5m'

/** A time, or an age relative to now. */
export type TimeOrAge = { readonly time: Date } | { readonly ageMilliseconds: number }

const TimeOrAge = z
  .string()
  .max(64)
  .transform((text, context): TimeOrAge => {
    if (durationPattern.test(text) && text.length <= 32) {
      const parts = text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)
      const seconds = [...parts].reduce(
        (sum, [, count, unit]) => sum + Number(count) * (secondsOfUnit[unit ?? ''] ?? 0),
        0,
      )
      return { ageMilliseconds: seconds * 1000 }
    }
    const { success } = z.iso.datetime({ offset: true }).safeParse(text)
    if (success) return { time: new Date(text) }
    context.addIssue({ code: 'custom', message: timeRule })
    return z.NEVER
  })
  .meta({ override: { type: 'string' } })

const wholeNumber = (least: number, rule: string) =>
  z
    .string()
    .regex(/^\d{1,15}$/, { error: rule })
    .transform(Number)
    .refine((count) => count >= least, { error: rule })

export const listTelemetryEvents = defineEndpoint({
  operationId: 'listTelemetryEvents',
  method: 'GET',
  path: '/browsers/{id_or_name}/telemetry/events',
  summary: 'List stored telemetry events of a session',
  description:
    'Also after the session has ended. A page may be empty although there are more: continue until `X-Has-More` is false.',
  tag,
  access: 'project',
  params: z.object({ id_or_name: IdOrName }),
  query: z
    .object({
      since: TimeOrAge.optional().meta({ description: 'Defaults to 5m. Ignored when `offset` is set.' }),
      until: TimeOrAge.optional().meta({ description: 'Exclusive.' }),
      limit: wholeNumber(1, `must be from 1 to ${maxPageLimit}`)
        .transform((limit) => Math.min(limit, maxPageLimit))
        .default(defaultPageLimit)
        .meta({ override: { type: 'integer', minimum: 1, maximum: maxPageLimit, default: defaultPageLimit } }),
      offset: wholeNumber(0, 'must be a cursor of X-Next-Offset')
        .optional()
        .meta({ description: 'The `X-Next-Offset` of the page before.', override: { type: 'integer', minimum: 0 } }),
      category: listOf(TelemetryCategory),
      type: listOf(TelemetryType),
      order: z.enum(['asc', 'desc']).default('asc'),
    })
    .refine(({ order, since }) => order === 'asc' || since === undefined, {
      path: ['since'],
      error: 'cannot be combined with order=desc',
    }),
  reply: z.array(TelemetryEnvelope),
  replyHeaders: z.object({
    'X-Limit': z.int(),
    'X-Offset': z.int(),
    'X-Has-More': z.boolean(),
    'X-Next-Offset': z.int(),
  }),
  status: 200,
  errors: ['session_not_found'],
})
export type TelemetryQuery = z.output<typeof listTelemetryEvents.query & {}>
