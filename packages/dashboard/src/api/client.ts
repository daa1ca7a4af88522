import { dashboardApiPath, dashboardHeader } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import { type Endpoint, queryText, requestPath } from '@berth/contract/endpoint.ts'
import type { z } from 'zod'
import { readProject } from './project.ts'

/** An error response of berth. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly details: readonly { readonly message?: string }[]

  constructor(status: number, body: ErrorBody) {
    super(body.message ?? `berth answered with status ${status}.`)
    this.status = status
    this.code = body.code ?? 'unknown'
    this.details = body.details ?? []
  }
}

interface ErrorBody {
  readonly code?: string
  readonly message?: string
  readonly details?: readonly { readonly message?: string }[]
}

/** The parts of a call that its endpoint declares. A body other than JSON is sent unchanged. */
export interface CallParts<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType> {
  readonly params?: z.input<Params>
  readonly query?: QueryOf<z.input<Query>>
  readonly body?: z.input<Body> | Blob | FormData
  readonly signal?: AbortSignal
  /** A project other than the chosen one; null for none. */
  readonly project?: string | null
}

/** Numbers and booleans are converted to text in the query. */
type QueryOf<Query> = Query extends undefined ? undefined : { readonly [Key in keyof Query]?: QueryValue<Query[Key]> }
type QueryValue<Value> = Value | (undefined extends Value ? undefined : never) | number | boolean

/** Calls an endpoint of the contract and returns its JSON response. */
export async function call<
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Reply extends z.ZodType,
>(
  endpoint: Endpoint<Params, Query, Body, Reply>,
  parts: CallParts<Params, Query, Body> = {},
): Promise<z.output<Reply>> {
  const response = await send(endpoint as Endpoint, parts as AnyParts)
  return (endpoint.reply && response.status !== 204 ? await response.json() : undefined) as z.output<Reply>
}

export interface ListPage<Item> {
  readonly items: readonly Item[]
  readonly nextOffset: number | undefined
  readonly nextToken: string | undefined
}

/** Calls an endpoint that returns one page of a list. */
export async function callPage<Params extends z.ZodType, Query extends z.ZodType, Reply extends z.ZodType>(
  endpoint: Endpoint<Params, Query, z.ZodUndefined, Reply>,
  parts: CallParts<Params, Query, z.ZodUndefined> = {},
): Promise<ListPage<z.output<Reply> extends readonly (infer Item)[] ? Item : never>> {
  const response = await send(endpoint as Endpoint, parts as AnyParts)
  const hasMore = response.headers.get('x-has-more') === 'true'
  return {
    items: (await response.json()) as never,
    nextOffset: hasMore ? Number(response.headers.get('x-next-offset')) : undefined,
    nextToken: response.headers.get('x-next-page-token') ?? undefined,
  }
}

/** Calls an endpoint that returns a file. */
export async function callFile<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType>(
  endpoint: Endpoint<Params, Query, Body>,
  parts: CallParts<Params, Query, Body> = {},
): Promise<Blob> {
  return (await send(endpoint as Endpoint, parts as AnyParts)).blob()
}

/** The events of a stream, until it ends or the signal aborts. */
export async function* follow<Params extends z.ZodType, Query extends z.ZodType, Event extends z.ZodType>(
  endpoint: Endpoint<Params, Query, z.ZodUndefined, Event>,
  parts: CallParts<Params, Query, z.ZodUndefined>,
): AsyncGenerator<z.output<Event>> {
  const { body } = await send(endpoint as Endpoint, parts as AnyParts)
  if (!body) return
  let rest = ''
  for await (const text of body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('data: ')) yield JSON.parse(line.slice(6)) as z.output<Event>
  }
}

type AnyParts = CallParts<z.ZodAny, z.ZodAny, z.ZodAny>

async function send({ method, path, access, bodyType }: Endpoint, parts: AnyParts): Promise<Response> {
  const { params = {}, query = {}, body, signal, project = readProject() } = parts
  const headers = new Headers({ [dashboardHeader]: '1' })
  if (project) headers.set('x-kernel-project-id', project)
  const isJson = body !== undefined && bodyType === undefined
  if (isJson) headers.set('content-type', 'application/json')
  if (bodyType === 'application/octet-stream') headers.set('content-type', bodyType)
  const prefix = access === 'public' ? '' : dashboardApiPath
  const response = await fetch(
    `${prefix}${requestPath(path, params as Record<string, string>)}${queryText(withoutBlanks(query))}`,
    {
      method,
      headers,
      ...(body !== undefined && { body: isJson ? JSON.stringify(body) : (body as Blob | FormData) }),
      ...(signal && { signal }),
    },
  )
  if (response.ok) return response
  throw new ApiError(response.status, (await response.json().catch(() => ({}))) as ErrorBody)
}

/** An empty field of a form is not a filter. */
function withoutBlanks(query: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(query).filter(([, value]) => value !== null && value !== ''))
}
