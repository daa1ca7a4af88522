import { z } from 'zod'
import { idPattern } from '../common/ids.ts'
import { PageQuery } from '../common/page.ts'
import { nameOf, SearchText } from '../common/text.ts'
import { Timestamp } from '../common/time.ts'
import { defineEndpoint } from '../endpoint.ts'

const tag = 'Telemetry Destinations'
const maxHeaderBytes = 8_192
const signalPath = /\/v1\/(?:logs|traces|metrics)\/?$/
const headerName = /^[!#$%&'*+.^_`|~\w-]{1,256}$/
const headerValue = /^[\x20-\x7e\t]*$/
/** The exporter sets the first three itself. The others would change the meaning of the request. */
const reservedHeaders = [
  'content-type',
  'content-length',
  'content-encoding',
  'host',
  'connection',
  'transfer-encoding',
]

const DestinationName = nameOf(255).refine((name) => !idPattern.test(name), { error: 'must not look like an id' })
const Description = z.string().max(1024)

const Endpoint = z
  .string()
  .max(2048)
  .refine((text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol), {
    error: 'must be a URL with http or https',
    abort: true,
  })
  .refine((text) => !text.includes('?') && !text.includes('#'), { error: 'must have no query and no fragment' })
  .refine((text) => new URL(text).username === '' && new URL(text).password === '', {
    error: 'must have no user name and no password; use headers',
  })
  .refine((text) => !signalPath.test(text), { error: 'must be the base of the collector, without /v1/logs' })

const HeaderValue = z.string().regex(headerValue, { error: 'must be printable ASCII characters' })

function checkHeaders(headers: Readonly<Record<string, unknown>>, context: z.RefinementCtx): void {
  const names = Object.keys(headers)
  const refuse = (message: string, path: string[] = []) => context.addIssue({ code: 'custom', message, path })
  for (const name of names) {
    if (!headerName.test(name)) refuse('is not the name of a header', [name])
    else if (reservedHeaders.includes(name.toLowerCase())) refuse('is set by berth', [name])
  }
  if (new Set(names.map((name) => name.toLowerCase())).size !== names.length) refuse('must not have a name twice')
  const bytes = Object.entries(headers).reduce(
    (sum, [name, value]) => sum + name.length + String(value ?? '').length,
    0,
  )
  if (bytes > maxHeaderBytes) refuse(`must have at most ${maxHeaderBytes} bytes`)
}

export const OtlpDestination = z
  .object({
    id: z.string(),
    name: z.string(),
    endpoint: z.string(),
    headers: z.record(z.string(), z.string()).meta({ description: 'Header names, each with an empty value.' }),
    description: z.string().optional(),
    consecutive_failures: z.int().meta({ description: 'Failed exports since the last success, not counting retries.' }),
    last_error: z.string().optional(),
    last_error_at: Timestamp.optional(),
    last_export_at: Timestamp.optional().meta({
      description: 'When the collector last accepted events, to about ten seconds.',
    }),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'OtlpDestination' })
export type OtlpDestination = z.infer<typeof OtlpDestination>

export const OtlpDestinationCreateRequest = z.object({
  name: DestinationName,
  endpoint: Endpoint.meta({ description: 'The base URL of an OTLP/HTTP collector. berth appends /v1/logs.' }),
  description: Description.optional(),
  headers: z.record(z.string(), HeaderValue).superRefine(checkHeaders).optional().meta({ description: 'Write-only.' }),
})
export type OtlpDestinationCreateRequest = z.output<typeof OtlpDestinationCreateRequest>

export const OtlpDestinationUpdateRequest = z.object({
  name: DestinationName.optional(),
  endpoint: Endpoint.optional(),
  description: Description.optional().meta({ description: 'An empty text removes it.' }),
  headers: z
    .record(z.string(), HeaderValue.nullable())
    .superRefine(checkHeaders)
    .optional()
    .meta({ description: 'Null removes a header. Headers that are not named stay.' }),
})
export type OtlpDestinationUpdateRequest = z.output<typeof OtlpDestinationUpdateRequest>

const path = '/telemetry/destinations'
const OneDestination = z.object({ id_or_name: z.string().min(1).max(255) })

export const createOtlpDestination = defineEndpoint({
  operationId: 'createOtlpDestination',
  method: 'POST',
  path,
  summary: 'Create a destination of telemetry',
  tag,
  access: 'organization',
  body: OtlpDestinationCreateRequest,
  reply: OtlpDestination,
  status: 201,
  errors: ['otlp_destination_name_taken'],
})

export const listOtlpDestinations = defineEndpoint({
  operationId: 'listOtlpDestinations',
  method: 'GET',
  path,
  summary: 'List destinations of telemetry',
  tag,
  access: 'organization',
  query: PageQuery.extend({
    name: z.string().max(255).optional().meta({ description: 'The exact name, in any case.' }),
    query: SearchText.optional().meta({ description: 'A part of the name or endpoint, or the id.' }),
  }),
  reply: z.array(OtlpDestination),
  paged: true,
  status: 200,
  errors: [],
})

export const getOtlpDestination = defineEndpoint({
  operationId: 'getOtlpDestination',
  method: 'GET',
  path: `${path}/{id_or_name}`,
  summary: 'Get a destination of telemetry',
  tag,
  access: 'organization',
  params: OneDestination,
  reply: OtlpDestination,
  status: 200,
  errors: ['otlp_destination_not_found'],
})

export const updateOtlpDestination = defineEndpoint({
  operationId: 'updateOtlpDestination',
  method: 'PATCH',
  path: `${path}/{id_or_name}`,
  summary: 'Change a destination of telemetry',
  description: 'Running sessions use the change within seconds.',
  tag,
  access: 'organization',
  params: OneDestination,
  body: OtlpDestinationUpdateRequest,
  reply: OtlpDestination,
  status: 200,
  errors: ['otlp_destination_not_found', 'otlp_destination_name_taken'],
})

export const deleteOtlpDestination = defineEndpoint({
  operationId: 'deleteOtlpDestination',
  method: 'DELETE',
  path: `${path}/{id_or_name}`,
  summary: 'Delete a destination of telemetry',
  tag,
  access: 'organization',
  params: OneDestination,
  status: 204,
  errors: ['otlp_destination_not_found', 'otlp_destination_in_use'],
})
