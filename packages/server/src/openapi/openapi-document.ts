import { STATUS_CODES } from 'node:http'
import { type Endpoint, errorsOf } from '@berth/contract/endpoint.ts'
import { type ErrorCode, errorCatalogue, publicCodeOf } from '@berth/contract/errors.ts'
import { publicEndpoints } from '@berth/contract/index.ts'
import { isStream } from '@berth/contract/stream.ts'
import { z } from 'zod'
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
} from 'zod-openapi'

/** The version of the API that berth implements, not of berth. */
const interfaceVersion = '0.1.0'

export type OpenApiDocument = ReturnType<typeof createDocument>

const ErrorDetail = z
  .object({
    code: z.string().optional().meta({ description: 'Lower-level code.' }),
    message: z.string().optional(),
  })
  .meta({ id: 'ErrorDetail' })

const ErrorBody = z
  .object({
    code: z.string().meta({ description: 'For programs: never renamed.' }),
    message: z.string().meta({ description: 'For people.' }),
    details: z.array(ErrorDetail).optional().meta({ description: 'Each of several faults.' }),
    inner_error: ErrorDetail.optional(),
    net_error: z
      .int()
      .optional()
      .meta({ description: 'Of a request of the browser: Chromium’s number for its failure.' }),
    net_error_name: z.string().optional().meta({ description: 'The same by its name: `ERR_NAME_NOT_RESOLVED`.' }),
  })
  .meta({ id: 'Error' })

/** The error of a request for a resource that already exists. */
const ExistingBody = ErrorBody.extend({ existing_id: z.string() }).meta({ id: 'AlreadyExistsError' })
const tellingWhatExists: readonly ErrorCode[] = ['auth_connection_exists']

const projectHeaders = z.object({
  'X-Kernel-Project-Id': z.string().optional().meta({ description: 'Project by id. Default: the project `Default`.' }),
  'X-Kernel-Project': z.string().optional().meta({ description: 'Project by id or exact name.' }),
})

const pageHeaders = z.object({
  'X-Limit': z.int().meta({ description: 'The limit that was used.' }),
  'X-Offset': z.int().meta({ description: 'The offset that was used.' }),
  'X-Has-More': z.boolean().meta({ description: 'Whether another page follows.' }),
  'X-Next-Offset': z.int().meta({ description: 'Offset of the next page; 0 on the last one.' }),
})

const rateHeaders = z.object({
  'X-RateLimit-Limit': z.int().optional().meta({ description: 'Requests of the organization per minute.' }),
  'X-RateLimit-Remaining': z.int().optional().meta({ description: 'What is left of them in this minute.' }),
})

const retryHeader = {
  'X-Should-Retry': z.enum(['true', 'false']).optional().meta({ description: 'Whether sending it again can help.' }),
}

const retryAfterHeader = {
  'Retry-After': z.int().optional().meta({ description: 'Seconds after which sending it again can help.' }),
}

const eventStreamHeaders = z.object({
  'X-SSE-Content-Type': z.literal('application/json').meta({ description: 'What the data of each event is.' }),
  'Cache-Control': z
    .literal('no-cache, no-transform')
    .meta({ description: 'No proxy may compress or collect the events.' }),
  'X-Accel-Buffering': z.literal('no'),
})

/** The OpenAPI 3.1 document of every public operation. */
export function openApiDocument(): OpenApiDocument {
  const document = createDocument(
    {
      openapi: '3.1.0',
      info: {
        title: 'berth',
        version: interfaceVersion,
        description: 'Isolated, real Chromium sessions for AI agents.',
      },
      security: [{ bearerAuth: [] }],
      tags: [...new Set(publicEndpoints.map(({ tag }) => tag))].map((name) => ({ name })),
      paths: pathsOf(publicEndpoints),
      components: {
        securitySchemes: {
          bearerAuth: { type: 'http', scheme: 'bearer', description: 'An API key: `sk_…`.' },
        },
      },
    },
    { override: writeAsOnTheWire },
  )
  return withoutUnusedSchemas(document)
}

function pathsOf(endpoints: readonly Endpoint[]): ZodOpenApiPathsObject {
  const paths: ZodOpenApiPathsObject = {}
  for (const endpoint of endpoints) {
    paths[endpoint.path] = { ...paths[endpoint.path], [endpoint.method.toLowerCase()]: operationOf(endpoint) }
  }
  return paths
}

function operationOf(endpoint: Endpoint): ZodOpenApiOperationObject {
  return {
    operationId: endpoint.operationId,
    tags: [endpoint.tag],
    summary: endpoint.summary,
    ...(endpoint.description && { description: endpoint.description }),
    ...(endpoint.deprecated && { deprecated: true }),
    ...(endpoint.access === 'public' && { security: [] }),
    requestParams: {
      ...(['project', 'organization'].includes(endpoint.access) && { header: projectHeaders }),
      ...(endpoint.params && { path: objectSchema(endpoint.params) }),
      ...(endpoint.query && { query: queryParameters(objectSchema(endpoint.query)) }),
    },
    ...(endpoint.body && { requestBody: requestBodyOf(endpoint.body, endpoint.bodyType) }),
    responses: { [endpoint.status]: successOf(endpoint), ...otherSuccessesOf(endpoint), ...failuresOf(endpoint) },
  }
}

/** Objects are written as `tags[env]=prod` and arrays with commas, as by the official clients. */
function queryParameters(query: z.ZodObject): z.ZodObject {
  const parameters = Object.entries(query.shape).map(([name, schema]) => {
    const { type, deprecated } = z.toJSONSchema(schema, { io: 'input' })
    const param = {
      ...(type === 'object' && { style: 'deepObject' as const, explode: true }),
      ...(type === 'array' && { style: 'form' as const, explode: false }),
      ...(deprecated && { deprecated }),
    }
    return [name, Object.keys(param).length > 0 ? schema.meta({ ...schema.meta(), param }) : schema]
  })
  return z.object(Object.fromEntries(parameters))
}

function requestBodyOf(schema: z.ZodType, mediaType: string = 'application/json') {
  return { required: !acceptsAbsence(schema), content: { [mediaType]: { schema } } }
}

function acceptsAbsence(schema: z.core.$ZodType): boolean {
  return z.safeParse(schema, undefined).success
}

function successOf(endpoint: Endpoint): ZodOpenApiResponseObject {
  return {
    description: STATUS_CODES[endpoint.status] ?? 'Success',
    ...(endpoint.paged && { headers: pageHeaders }),
    ...(endpoint.isRateLimited && { headers: rateHeaders }),
    ...(endpoint.replyHeaders && { headers: endpoint.replyHeaders }),
    ...(isStream(endpoint) && { headers: eventStreamHeaders }),
    ...contentOf(endpoint),
  }
}

/** Partial content and JSON responses have a body. The other statuses have none. */
function otherSuccessesOf(endpoint: Endpoint): Record<string, ZodOpenApiResponseObject> {
  const others = Object.entries(endpoint.otherSuccesses ?? {}).map(([status, when]) => [
    status,
    {
      description: `${STATUS_CODES[status]}. ${when}`,
      ...(status !== '204' && (status === '206' || endpoint.reply) && contentOf(endpoint)),
    },
  ])
  return Object.fromEntries(others)
}

function contentOf({ reply, replyType }: Endpoint): Pick<ZodOpenApiResponseObject, 'content'> {
  if (!reply && !replyType) return {}
  const binary = z.unknown().meta({ override: { type: 'string', format: 'binary' } })
  return { content: { [replyType ?? 'application/json']: { schema: reply ?? binary } } }
}

/** One response per status, with its error codes. */
function failuresOf(endpoint: Endpoint): Record<string, ZodOpenApiResponseObject> {
  const codesByStatus = Map.groupBy(errorsOf(endpoint), (code) => errorCatalogue[code].status)
  const answered = [...codesByStatus].map(([status, codes]) => [
    status,
    failureResponse(
      `${statusName(status)}: ${codes
        .toSorted()
        .map((code) => `\`${publicCodeOf(code)}\``)
        .join(', ')}.`,
      codes,
    ),
  ])
  const reserved = Object.entries(endpoint.reservedStatuses ?? {}).map(([status, reason]) => [
    status,
    failureResponse(`${statusName(Number(status))}. Reserved: ${reason}`, []),
  ])
  return Object.fromEntries([...answered, ...reserved])
}

function failureResponse(description: string, codes: readonly ErrorCode[]): ZodOpenApiResponseObject {
  const tellsWhetherToRetry = codes.some((code) => 'retry' in errorCatalogue[code])
  const tellsWhen = codes.some((code) => 'retryAfterSeconds' in errorCatalogue[code])
  const headers = z.object({ ...(tellsWhetherToRetry && retryHeader), ...(tellsWhen && retryAfterHeader) })
  return {
    description,
    ...((tellsWhetherToRetry || tellsWhen) && { headers }),
    content: {
      'application/json': { schema: codes.some((code) => tellingWhatExists.includes(code)) ? ExistingBody : ErrorBody },
    },
  }
}

function statusName(status: number): string {
  return STATUS_CODES[status] ?? (status === 529 ? 'Capacity exhausted' : `Status ${status}`)
}

function objectSchema(schema: z.ZodType): z.ZodObject {
  if (schema instanceof z.ZodObject) return schema
  throw new TypeError('parameters are declared as a z.object')
}

interface RenderedSchema {
  readonly zodSchema: z.core.$ZodType
  readonly jsonSchema: z.core.JSONSchema.BaseSchema
  readonly io: 'input' | 'output'
}

/** Corrects where Zod's JSON schema differs from what is sent. */
function writeAsOnTheWire({ zodSchema, jsonSchema, io }: RenderedSchema): void {
  const { override } = z.globalRegistry.get(zodSchema) ?? {}
  if (typeof override === 'object') {
    // An override describes the whole type. What Zod infers from the text before a transform would contradict it.
    for (const key of Object.keys(jsonSchema)) {
      if (!['description', 'deprecated', 'default'].includes(key)) delete jsonSchema[key]
    }
  }
  // Responses may gain fields, so only strict schemas forbid additional properties.
  const isStrict = 'catchall' in zodSchema._zod.def && zodSchema._zod.def.catchall !== undefined
  if (io === 'output' && !isStrict && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
  // The range of JavaScript's integers is not a rule of the API.
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}

/** Removes anonymous schemas that overrides have made unused. */
function withoutUnusedSchemas(document: OpenApiDocument): OpenApiDocument {
  const schemas = document.components?.schemas ?? {}
  for (const name of Object.keys(schemas).filter((candidate) => candidate.startsWith('__schema'))) {
    const { [name]: _self, ...others } = schemas
    const isUsed = JSON.stringify([document.paths, others]).includes(`"#/components/schemas/${name}"`)
    if (!isUsed) delete schemas[name]
  }
  return document
}
