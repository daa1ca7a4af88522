import type { z } from 'zod'
import type { ErrorCode } from './errors.ts'

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/**
 * Who may call: anyone, the holder of an API key (for a project or for its organization), or the holder of the
 * session's token. The endpoints of agent and egress are `internal`: only berth can open their unix sockets.
 */
export type Access = 'public' | 'project' | 'organization' | 'session' | 'internal'

/** One operation of the API. The server, the agent, the OpenAPI document and the tests all use this declaration. */
export interface Endpoint<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
  Reply extends z.ZodType = z.ZodType,
> {
  readonly operationId: string
  readonly method: Method
  /** Parameters in braces, as in OpenAPI: `/browsers/{id_or_name}`. */
  readonly path: `/${string}`
  readonly summary: string
  readonly description?: string
  readonly tag: string
  readonly deprecated?: boolean
  /** Whether calls count towards the organization's rate limit. Responses then contain the rate limit headers. */
  readonly isRateLimited?: boolean
  readonly access: Access
  readonly params?: Params
  readonly query?: Query
  /** An absent body is parsed as `undefined`. Schemas that permit it use `.optional()` or a default. */
  readonly body?: Body
  /**
   * The media type of a body that is not JSON. It is streamed, and its schema only describes it in the API document.
   */
  readonly bodyType?: 'application/octet-stream' | 'multipart/form-data'
  /** Members of a JSON body that contain data, so that text in them may contain NUL. Elsewhere NUL is rejected. */
  readonly dataFields?: readonly string[]
  /**
   * The path of the member in a JSON body that names the session. The request is forwarded to the server of that
   * session.
   */
  readonly sessionField?: readonly string[]
  /** The largest JSON body in bytes. Defaults to the server's limit. */
  readonly bodyLimitBytes?: number
  /** The JSON response, or each event of a stream. When absent, the response is empty or of the type `replyType`. */
  readonly reply?: Reply
  /** The media type of a response that is not a JSON document. */
  readonly replyType?: string
  /** Sends the four headers of a list with offsets. The reply is then an array. */
  readonly paged?: boolean
  /** Headers of the successful response, which the handler sets. */
  readonly replyHeaders?: z.ZodObject
  /** The status of a successful response. */
  readonly status: number
  /** Other successful statuses, each with its condition. */
  readonly otherSuccesses?: Readonly<Record<number, string>>
  /** The error codes of this operation, in addition to those of its kind of access (see `errorsOf`). */
  readonly errors: readonly ErrorCode[]
  /** Status codes that the public document lists although berth never sends them, each with its reason. */
  readonly reservedStatuses?: Readonly<Record<number, string>>
}

/** Declares an endpoint and preserves the types of its parts. */
export function defineEndpoint<
  Params extends z.ZodType = z.ZodUndefined,
  Query extends z.ZodType = z.ZodUndefined,
  Body extends z.ZodType = z.ZodUndefined,
  Reply extends z.ZodType = z.ZodUndefined,
>(endpoint: Endpoint<Params, Query, Body, Reply>): Endpoint<Params, Query, Body, Reply> {
  return endpoint
}

/** Fills the parameters into a path. */
export function filledPath(path: string, params: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_braces, name: string) => encodeURIComponent(params[name] ?? ''))
}

/**
 * The path of a request. Throws a RangeError for an empty parameter, which would name another resource, and for `.` and
 * `..`, which URLs resolve even when they are encoded.
 */
export function requestPath(path: string, params: Readonly<Record<string, string | undefined>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_braces, name: string) => {
    const value = params[name] ?? ''
    if (['', '.', '..'].includes(value)) throw new RangeError(`${name}: must not be empty, "." or ".."`)
    return encodeURIComponent(value)
  })
}

/**
 * Writes a query in the form that berth parses: arrays repeat their name, and objects are `tags[env]=prod`. Starts with
 * `?` unless it is empty.
 */
export function queryText(query: Readonly<Record<string, unknown>>): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const each of value) search.append(name, String(each))
    else if (typeof value === 'object' && value !== null) {
      for (const [key, each] of Object.entries(value)) search.append(`${name}[${key}]`, String(each))
    } else if (value !== undefined) search.append(name, String(value))
  }
  const text = search.toString()
  return text && `?${text}`
}

/** All error codes of the operation. */
export function errorsOf(endpoint: Endpoint): readonly ErrorCode[] {
  const always: ErrorCode[] = ['internal_error']
  if (endpoint.access !== 'internal') always.push('shutting_down', 'too_many_connections')
  const needsKey = endpoint.access === 'project' || endpoint.access === 'organization'
  if (needsKey || endpoint.access === 'session') always.push('database_unavailable', 'database_busy', 'unauthorized')
  if (needsKey) {
    always.push('bad_request', 'forbidden', 'project_not_found', 'insufficient_scope', 'oauth_issuer_unavailable')
  }
  if (endpoint.isRateLimited) always.push('rate_limited')
  if (endpoint.query || endpoint.params) always.push('invalid_input')
  if (endpoint.body) {
    always.push('bad_request', 'invalid_input', 'body_too_large', 'unsupported_media_type', 'request_timeout')
  }
  if (endpoint.errors.includes('session_unreachable')) always.push('session_moving')
  return [...new Set([...always, ...endpoint.errors])]
}
