import { z } from 'zod'
import { TimeInput, Timestamp } from '../common/time.ts'
import { defineEndpoint } from '../endpoint.ts'

const tag = 'Audit Logs'
const maxPage = 100
const maxChunk = 50_000

const wholeNumber = (maximum: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, { error: `must be a whole number from 1 to ${maximum}` })
    .transform(Number)
    .refine((limit) => limit >= 1, { error: `must be a whole number from 1 to ${maximum}` })
    .transform((limit) => Math.min(limit, maximum))
    .default(maximum)
    .meta({ override: { type: 'integer', minimum: 1, maximum, default: maximum } })

/** Clients separate array items by commas or repeat the key. */
const textList = (maximum: number) =>
  z
    .union([z.string(), z.array(z.string())])
    .transform((value) =>
      [value]
        .flat()
        .flatMap((text) => text.split(','))
        .map((text) => text.trim())
        .filter(Boolean),
    )
    .refine((values) => values.length <= maximum, { error: `must have at most ${maximum} items` })
    .meta({ override: { type: 'array', items: { type: 'string' }, maxItems: maximum } })

const AuditQuery = z.object({
  start: TimeInput.meta({ description: 'Entries from this time on.' }),
  end: TimeInput.meta({ description: 'Entries before this time, at most 30 days after the start.' }),
  auth_strategy: z.string().max(255).optional().meta({ description: '`api_key`, `oauth`, or `session_token`.' }),
  service: z.string().max(255).optional().meta({ description: '`api`.' }),
  method: z.string().max(255).optional(),
  exclude_method: textList(10).optional(),
  search: z
    .string()
    .max(1024)
    .optional()
    .meta({ description: 'Text to find in path, user id, e-mail address, client address or status.' }),
  search_user_id: textList(100).optional().meta({ description: 'User ids to find in addition to the search.' }),
})
export type AuditQuery = z.output<typeof AuditQuery>

export const AuditLogEntry = z
  .object({
    timestamp: Timestamp,
    auth_strategy: z
      .string()
      .meta({ description: '`api_key`; `session_token` for operations by the URL of a session.' }),
    user_id: z.string().meta({ description: 'The API key, or the session of a token.' }),
    email: z.string(),
    status: z.int(),
    method: z.string(),
    path: z.string().meta({ description: 'Without its query.' }),
    route: z.string(),
    domain: z.string(),
    duration_ms: z.int(),
    client_ip: z.string(),
    user_agent: z.string(),
  })
  .meta({ id: 'AuditLogEntry' })
export type AuditLogEntry = z.infer<typeof AuditLogEntry>

export const listAuditLogs = defineEndpoint({
  operationId: 'listAuditLogs',
  method: 'GET',
  path: '/audit-logs',
  summary: 'Search the audit log',
  description: 'Every request of the organization that changes something, newest first.',
  tag,
  access: 'organization',
  query: AuditQuery.extend({ limit: wholeNumber(maxPage), page_token: z.string().max(4096).optional() }),
  reply: z.array(AuditLogEntry),
  replyHeaders: z.object({
    'X-Limit': z.int(),
    'X-Has-More': z.boolean(),
    'X-Next-Page-Token': z.string().optional().meta({ description: 'Absent on the last page.' }),
  }),
  status: 200,
  errors: [],
})

export const exportAuditLogChunk = defineEndpoint({
  operationId: 'exportAuditLogChunk',
  method: 'GET',
  path: '/audit-logs/export/chunk',
  summary: 'Export a part of the audit log',
  description:
    'JSON lines, oldest first, each an entry with its `event_id`. The same cursor gives the same bytes. Each compressed ' +
    'part is a complete gzip member, so the concatenated parts are a valid gzip file.',
  tag,
  access: 'organization',
  query: AuditQuery.extend({
    cursor: z.string().max(4096).optional(),
    limit: wholeNumber(maxChunk),
    format: z.enum(['jsonl', 'jsonl.gz']).default('jsonl.gz'),
  }),
  replyType: 'application/octet-stream',
  replyHeaders: z.object({
    'X-Has-More': z.boolean(),
    'X-Next-Cursor': z.string().optional().meta({ description: 'Absent on the last part.' }),
    'X-Row-Count': z.int(),
    'X-Content-Sha256': z.string().meta({ description: 'Of the body, in hex.' }),
  }),
  status: 200,
  errors: [],
})
