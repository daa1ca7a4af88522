import { type Endpoint, queryText, requestPath } from '@berth/contract/endpoint.ts'

export interface ApiRequest {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
}

/** A connection to berth with an API key. */
export interface ApiOptions {
  readonly url: string
  readonly apiKey: string
  /** Id or name of the project, sent as a header with every request. */
  readonly project?: string | undefined
  readonly fetch?: typeof fetch
  readonly signal?: AbortSignal
}

/** An error response of the API. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string | undefined

  constructor(status: number, code: string | undefined, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export interface ListReply {
  readonly items: readonly unknown[]
  readonly has_more: boolean
  readonly next_offset: number | null
}

export class Api {
  readonly #options: ApiOptions

  constructor(options: ApiOptions) {
    this.#options = options
  }

  inProject(project: string): Api {
    return new Api({ ...this.#options, project })
  }

  /** Resolves with a successful response, or throws an ApiError. */
  async send(endpoint: Endpoint, { params = {}, query = {}, body }: ApiRequest = {}): Promise<Response> {
    const { url, apiKey, project, signal, fetch: send = fetch } = this.#options
    const response = await send(`${url}${requestPath(endpoint.path, params)}${queryText(query)}`, {
      method: endpoint.method,
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(project !== undefined && { 'x-kernel-project': project }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    })
    if (response.ok) return response
    const text = await response.text()
    const { code, message } = errorOf(text)
    throw new ApiError(response.status, code, message ?? (text || response.statusText))
  }

  /** The JSON of a reply; undefined if it has none. */
  async call<Reply>(endpoint: Endpoint, request?: ApiRequest): Promise<Reply> {
    const text = await (await this.send(endpoint, request)).text()
    return (text ? JSON.parse(text) : undefined) as Reply
  }

  async list(endpoint: Endpoint, request?: ApiRequest): Promise<ListReply> {
    const response = await this.send(endpoint, request)
    const hasMore = response.headers.get('x-has-more') === 'true'
    const items = (await response.json()) as readonly unknown[]
    return { items, has_more: hasMore, next_offset: hasMore ? Number(response.headers.get('x-next-offset')) : null }
  }
}

function errorOf(text: string): { readonly code?: string; readonly message?: string } {
  try {
    return (JSON.parse(text) ?? {}) as { code?: string; message?: string }
  } catch {
    return {}
  }
}
