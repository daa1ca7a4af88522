import { type Endpoint, queryText, requestPath } from '@berth/contract/endpoint.ts'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { ApiFailure, failureOf } from './api-failure.ts'
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
      throw new ApiFailure(
        `${url} cannot be reached: ${causeOf(error)} (berth login stores another address)`,
        'unavailable',
      )
    })
    if (!response.ok) throw await failureOf(response)
    return response
  }

  /** Sends a request whose reply is JSON. */
  async call<Reply>(endpoint: Endpoint, request?: ApiRequest): Promise<Reply> {
    return (await (await this.send(endpoint, request)).json()) as Reply
  }

  /** Yields the events of a stream. */
  async *follow<Event>(endpoint: Endpoint, request?: ApiRequest): AsyncGenerator<Event, void, void> {
    const { body } = await this.send(endpoint, request)
    if (!body) return
    const messages = body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
    for await (const { data } of messages) yield JSON.parse(data) as Event
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

function causeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  return cause instanceof Error ? cause.message || String((cause as NodeJS.ErrnoException).code) : String(cause)
}
