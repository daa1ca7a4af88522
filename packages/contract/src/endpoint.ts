import type { z } from 'zod'
import type { ErrorCode } from './errors.ts'

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/**
 * Who may call: anybody, the holder of an API key (for a project or for its organization), or the holder of the
 * session's own token.
 * The agent's and egress' own endpoints are `internal`: they are reached over unix sockets that only berth can open.
 */
export type Access = 'public' | 'project' | 'organization' | 'session' | 'internal'

/** One operation of the API, declared once; server, agent, OpenAPI document and tests read it. */
export interface Endpoint<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
  Reply extends z.ZodType = z.ZodType,
> {
  readonly operationId: string
  readonly method: Method
  /** Braced parameters, as OpenAPI writes them: `/browsers/{id_or_name}`. */
  readonly path: `/${string}`
  readonly summary: string
  readonly description?: string
  readonly tag: string
  readonly deprecated?: boolean
  /** How often an organization may call it is limited: every answer says by headers what is left. */
  readonly isRateLimited?: boolean
  readonly access: Access
  readonly params?: Params
  readonly query?: Query
  /** An absent body is parsed as `undefined`; a schema that allows it says so with `.optional()` or a default. */
  readonly body?: Body
  /** Media type of a body that is no JSON: it is streamed, and its schema is for the API document alone. */
  readonly bodyType?: 'application/octet-stream' | 'multipart/form-data'
  /** Members of a JSON body that are data, in which text may hold any character; elsewhere NUL is refused. */
  readonly dataFields?: readonly string[]
  /** Largest JSON body in bytes. Absent: the server's own limit. */
  readonly bodyLimitBytes?: number
  /** The JSON answer, or that of each event of a stream. Absent: the answer has no body, or one of `replyType`. */
  readonly reply?: Reply
  /** Media type of an answer that is no JSON document. */
  readonly replyType?: string
  /** Sends the four headers of an offset list; the reply is then an array. */
  readonly paged?: boolean
  /** Headers of the successful answer that its handler sets. */
  readonly replyHeaders?: z.ZodObject
  /** Status of success. */
  readonly status: number
  /** Further statuses of success, each with when it comes. */
  readonly otherSuccesses?: Readonly<Record<number, string>>
  /** The codes this operation can answer, beyond those that every operation of its access can (see `errorsOf`). */
  readonly errors: readonly ErrorCode[]
  /** Status codes that the public document promises although berth never answers them, each with its reason. */
  readonly reservedStatuses?: Readonly<Record<number, string>>
}

/** Declares an endpoint and keeps the types of its parts. */
export function defineEndpoint<
  Params extends z.ZodType = z.ZodUndefined,
  Query extends z.ZodType = z.ZodUndefined,
  Body extends z.ZodType = z.ZodUndefined,
  Reply extends z.ZodType = z.ZodUndefined,
>(endpoint: Endpoint<Params, Query, Body, Reply>): Endpoint<Params, Query, Body, Reply> {
  return endpoint
}

/** The path of an endpoint with its parameters filled in. */
export function filledPath(path: string, params: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_braces, name: string) => encodeURIComponent(params[name] ?? ''))
}

/** Every error code that the operation may answer. */
export function errorsOf(endpoint: Endpoint): readonly ErrorCode[] {
  const always: ErrorCode[] = ['internal_error']
  if (endpoint.access !== 'internal') always.push('shutting_down', 'too_many_connections')
  const needsKey = endpoint.access === 'project' || endpoint.access === 'organization'
  if (needsKey || endpoint.access === 'session') always.push('database_unavailable', 'unauthorized')
  if (needsKey) always.push('bad_request', 'forbidden', 'project_not_found')
  if (endpoint.isRateLimited) always.push('rate_limited')
  if (endpoint.query || endpoint.params) always.push('invalid_input')
  if (endpoint.body) {
    always.push('bad_request', 'invalid_input', 'body_too_large', 'unsupported_media_type', 'request_timeout')
  }
  return [...new Set([...always, ...endpoint.errors])]
}
