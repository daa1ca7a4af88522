import type { ProviderAccess } from './known-providers.ts'
import type { ProviderRequest } from './provider.ts'

const maxAnswerBytes = 8 * 1024 * 1024

export type FailureCode =
  | 'timeout'
  | 'rate_limited'
  | 'provider_unavailable'
  | 'provider_unauthorized'
  | 'provider_quota_exceeded'
  | 'provider_rejected_request'
  | 'invalid_response'
  | 'response_too_large'

const messages: Readonly<Record<FailureCode, string>> = {
  timeout: 'did not answer in time',
  rate_limited: 'limits how often it is asked',
  provider_unavailable: 'cannot be reached, or is out of order',
  provider_unauthorized: 'refuses the key of the operator',
  provider_quota_exceeded: 'says that the account of the operator is used up',
  provider_rejected_request: 'refuses the request',
  invalid_response: 'answers with what it does not document',
  response_too_large: 'answers with more than fits',
}
const lasting: readonly FailureCode[] = [
  ...(['provider_unauthorized', 'provider_quota_exceeded', 'provider_rejected_request'] as const),
]

/** Why a request to a provider failed. Never contains text from the provider, which may include the operator's key. */
export class ProviderFailure extends Error {
  readonly code: FailureCode

  constructor(slug: string, code: FailureCode, options?: ErrorOptions) {
    super(`${slug} ${messages[code]}`, options)
    this.code = code
  }

  /** Whether the provider has failed, in contrast to an error in the request or the operator's account. */
  get isRetryable(): boolean {
    return !lasting.includes(this.code)
  }
}

/**
 * Sends a request to a provider and returns its JSON response. Rejects with a ProviderFailure, or when the signal
 * aborts.
 */
export async function askProvider(
  { provider, url, key }: ProviderAccess,
  request: ProviderRequest,
  signal: AbortSignal,
): Promise<unknown> {
  const fail = (code: FailureCode, cause?: unknown) => new ProviderFailure(provider.slug, code, { cause })
  const authorization = key === undefined ? {} : provider.authorize(key)
  const query = new URLSearchParams({ ...request.query, ...authorization.query })
  const address = `${url}${request.path}${query.size > 0 ? `?${query}` : ''}`
  let response: Response
  try {
    response = await fetch(address, {
      method: request.method,
      headers: {
        accept: 'application/json',
        ...request.headers,
        ...authorization.headers,
        ...(request.body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(request.body !== undefined && { body: JSON.stringify(request.body) }),
      // A redirect would forward the key.
      redirect: 'manual',
      signal,
    })
  } catch (cause) {
    throw signal.aborted ? fail('timeout', cause) : fail('provider_unavailable', cause)
  }
  if (!response.ok) {
    await response.body?.cancel().catch(() => {})
    throw fail(codeOf(response.status))
  }
  const text = await readText(response).catch((cause: unknown) => {
    throw signal.aborted ? fail('timeout', cause) : fail('provider_unavailable', cause)
  })
  if (text === undefined) throw fail('response_too_large')
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw fail('invalid_response', cause)
  }
}

function codeOf(status: number): FailureCode {
  if (status === 429) return 'rate_limited'
  if (status === 401 || status === 403) return 'provider_unauthorized'
  // The last two are specific to Tavily: the limits of the plan and of paid usage.
  if (status === 402 || status === 432 || status === 433) return 'provider_quota_exceeded'
  if (status === 408 || status === 504) return 'timeout'
  return status >= 500 || status < 400 ? 'provider_unavailable' : 'provider_rejected_request'
}

async function readText(response: Response): Promise<string | undefined> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of response.body ?? []) {
    bytes += piece.length
    if (bytes > maxAnswerBytes) return undefined
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}
