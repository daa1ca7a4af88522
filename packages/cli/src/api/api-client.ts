import { type Endpoint, queryText, requestPath } from '@berth/contract/endpoint.ts'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { ApiFailure, failureOf, LostConnection } from './api-failure.ts'
import { type Connection, type ConnectionFlags, findConnection } from './saved-servers.ts'
import { countedBody, type EncodedBody } from './upload-progress.ts'

export interface ApiRequest {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, unknown>>
  /** JSON, a form, or the bytes of an `application/octet-stream`. */
  readonly body?: unknown
  readonly signal?: AbortSignal
}

/** Sends requests to a berth, as declared in the contract. */
export class ApiClient {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  static async open(flags: ConnectionFlags): Promise<ApiClient> {
    return new ApiClient(await findConnection(flags))
  }

  get url(): string {
    return this.#connection.url
  }

  /** Resolves with a successful response, or throws an ApiFailure. */
  async send(endpoint: Endpoint, { params = {}, query = {}, body, signal }: ApiRequest = {}): Promise<Response> {
    const { url, apiKey, project } = this.#connection
    const headers = new Headers()
    if (apiKey) headers.set('authorization', `Bearer ${apiKey}`)
    if (project) headers.set('x-kernel-project', project)
    const encoded = encode(body, headers)
    const address = `${url}${pathOf(endpoint, params)}${queryText(query)}`
    const response = await fetch(address, {
      method: endpoint.method,
      headers,
      ...(encoded && { body: encoded, duplex: 'half' }),
      ...(signal && { signal }),
    }).catch((error: unknown) => {
      if (signal?.aborted) throw error
      throw new LostConnection(`${url} cannot be reached: ${causeOf(error)} (${hintOf(error)})`)
    })
    if (!response.ok) throw await failureOf(response)
    return response
  }

  /** Sends a request whose reply is JSON. */
  async call<Reply>(endpoint: Endpoint, request?: ApiRequest): Promise<Reply> {
    return (await this.read(await this.send(endpoint, request))) as Reply
  }

  /** The JSON of a reply; undefined when there is none. */
  async read(response: Response): Promise<unknown> {
    const text = await response.text().catch((error: unknown) => this.#lose(error))
    try {
      return text ? JSON.parse(text) : undefined
    } catch {
      throw new ApiFailure(`${this.url} is not a berth server (berth login stores another address)`, 'software')
    }
  }

  /** Yields the events of a stream. */
  async *follow<Event>(endpoint: Endpoint, request?: ApiRequest): AsyncGenerator<Event, void, void> {
    yield* this.eventsOf<Event>(await this.send(endpoint, request), request?.signal)
  }

  /** Yields the events of an open stream. */
  async *eventsOf<Event>({ body }: Response, signal?: AbortSignal): AsyncGenerator<Event, void, void> {
    if (!body) return
    const messages = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
    const reader = messages.getReader()
    try {
      for (;;) {
        const { done, value } = await reader.read().catch((error: unknown) => {
          if (signal?.aborted) throw error
          return this.#lose(error)
        })
        if (done) return
        yield JSON.parse(value.data) as Event
      }
    } finally {
      await reader.cancel().catch(() => {}) // It may have ended already.
    }
  }

  #lose(error: unknown): never {
    throw new LostConnection(`the connection to ${this.url} broke off: ${causeOf(error)}`)
  }
}

function pathOf({ path }: Endpoint, params: Readonly<Record<string, string>>): string {
  try {
    return requestPath(path, params)
  } catch (error) {
    throw new ApiFailure((error as RangeError).message, 'usage')
  }
}

function encode(body: unknown, headers: Headers): EncodedBody | undefined {
  if (body === undefined) return undefined
  if (body instanceof FormData || body instanceof Blob) return countedBody(body, headers)
  headers.set('content-type', 'application/json')
  return JSON.stringify(body)
}

/** How the user can fix it. */
function hintOf(error: unknown): string {
  const { code = '' } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException
  if (/CERT|SIGNATURE|ISSUER/.test(code)) return 'NODE_EXTRA_CA_CERTS names a file with certificates to trust'
  if (/SSL|EPROTO/.test(code)) return 'use http:// for an address without TLS'
  return 'berth login stores another address'
}

function causeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  if (!(cause instanceof Error)) return String(cause)
  // OpenSSL messages include source locations.
  const { code, reason } = cause as NodeJS.ErrnoException & { readonly reason?: string }
  return reason ?? (cause.message || String(code))
}
