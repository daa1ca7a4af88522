import type { CdpEventParams } from '../../browser/cdp-types.ts'
import { connectionFailures } from '../../network/connection-failures.ts'
import { bodyLimit, cut, cutBytes } from './cut.ts'
import type { ObservablePage, Observer } from './observer.ts'
import { isProxyErrorCode, proxyErrorHeader } from './proxy-errors.ts'

const idleMilliseconds = 500
const maxRequests = 2_000
const maxUrlLength = 8 * 1024
const maxHeaderLength = 4 * 1024
/** Longer bodies are not fetched from Chromium only to be truncated. */
const maxFetchedBytes = 1024 * 1024
const maxFetches = 16
const answerLimitMilliseconds = 5_000
/** How much of bodies Chromium may buffer for us. */
const buffers = { maxTotalBufferSize: 16 * 1024 * 1024, maxResourceBufferSize: 2 * 1024 * 1024 }
/** Resource types that stay open as long as the page wants. */
const endless = ['EventSource', 'WebSocket', 'Ping']

type Sent = CdpEventParams<'Network.requestWillBeSent'>
type Response = CdpEventParams<'Network.responseReceived'>['response']

interface KnownRequest {
  readonly url: string
  readonly method: string
  readonly type: string
  readonly frameId: string | undefined
  readonly loaderId: string
  response?: Response
}

/** Requests of a target, their responses, and failed connections to its sites. */
export class NetworkObserver implements Observer {
  readonly #target: ObservablePage
  readonly #requests = new Map<string, KnownRequest>()
  readonly #open = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #fetches = 0

  constructor(target: ObservablePage) {
    this.#target = target
  }

  get isWanted(): boolean {
    return this.#target.collector.captures('network')
  }

  readonly handlers = {
    'Network.requestWillBeSent': (params: Sent) => this.#takeRequest(params),
    'Network.responseReceived': ({ requestId, response }: CdpEventParams<'Network.responseReceived'>) => {
      const request = this.#requests.get(requestId)
      if (request) request.response = response
    },
    'Network.loadingFinished': ({ requestId, encodedDataLength }: CdpEventParams<'Network.loadingFinished'>) => {
      const request = this.#forget(requestId)
      if (request?.response) void this.#reportResponse(requestId, request, request.response, encodedDataLength)
    },
    'Network.loadingFailed': (params: CdpEventParams<'Network.loadingFailed'>) => this.#takeFailure(params),
  }

  start(): Promise<unknown> {
    return this.#target.send('Network.enable', buffers)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#requests.clear()
    this.#open.clear()
    this.#target.send('Network.disable').catch(() => {}) // The target has closed.
  }

  #takeRequest({
    requestId,
    request,
    documentURL,
    initiator,
    type = 'Other',
    frameId,
    loaderId,
    redirectResponse,
  }: Sent): void {
    if (request.url.startsWith('data:')) return
    const before = this.#requests.get(requestId)
    if (before && redirectResponse) this.#emitResponse(requestId, before, redirectResponse, undefined, false)
    const known = { url: request.url, method: request.method, type, frameId, loaderId }
    if (this.#requests.size < maxRequests || before) this.#requests.set(requestId, known)
    if (!endless.includes(type)) this.#open.add(requestId)
    clearTimeout(this.#timer)

    const { headers, isCut } = shortHeaders(request.headers)
    const limit = request.postData === undefined ? 0 : bodyLimit(contentType(request.headers))
    const post = limit > 0 ? cutBytes(request.postData ?? '', limit) : undefined
    const data = {
      ...this.#context(known),
      request_id: requestId,
      method: request.method,
      document_url: documentURL.slice(0, maxUrlLength),
      headers,
      initiator_type: initiator.type,
      resource_type: type,
      ...(post && { post_data: post.text }),
      is_redirect: redirectResponse !== undefined,
      ...(redirectResponse && { redirect_url: request.url.slice(0, maxUrlLength) }),
    }
    this.#target.emit('network_request', 'Network.requestWillBeSent', data, isCut || post?.isCut === true)
  }

  async #reportResponse(requestId: string, request: KnownRequest, response: Response, bytes: number): Promise<void> {
    const limit = bodyLimit(response.mimeType)
    const body = limit > 0 ? await this.#body(requestId, bytes, limit) : undefined
    this.#emitResponse(requestId, request, response, body?.text, body?.isCut ?? false)
  }

  async #body(requestId: string, bytes: number, limit: number): Promise<{ text?: string; isCut: boolean } | undefined> {
    if (bytes > maxFetchedBytes || this.#fetches >= maxFetches) return { isCut: true }
    this.#fetches += 1
    try {
      const answer = await this.#target.send('Network.getResponseBody', { requestId }, answerLimitMilliseconds)
      return answer.base64Encoded ? undefined : cutBytes(answer.body, limit)
    } catch {
      return { isCut: true } // Chromium has dropped it, for example with the page that requested it.
    } finally {
      this.#fetches -= 1
    }
  }

  #emitResponse(
    requestId: string,
    request: KnownRequest,
    response: Response,
    body: string | undefined,
    isBodyCut: boolean,
  ): void {
    const { status, statusText, mimeType } = response
    const { headers, isCut } = shortHeaders(response.headers)
    const data = {
      ...this.#context(request),
      request_id: requestId,
      method: request.method,
      status,
      status_text: statusText,
      headers,
      mime_type: mimeType,
      resource_type: request.type,
      ...(body !== undefined && { body }),
    }
    this.#target.emit('network_response', 'Network.responseReceived', data, isCut || isBodyCut)
    const code = Object.entries(response.headers).find(([name]) => name.toLowerCase() === proxyErrorHeader)?.[1]
    if (code) this.#reportProxyError(requestId, request, code, status)
  }

  #takeFailure({ requestId, errorText, canceled, type }: CdpEventParams<'Network.loadingFailed'>): void {
    const request = this.#forget(requestId)
    if (!request) return
    const data = {
      ...this.#context(request),
      request_id: requestId,
      error_text: errorText,
      canceled: canceled ?? false,
      resource_type: type,
    }
    this.#target.emit('network_loading_failed', 'Network.loadingFailed', data)
    const failure = canceled ? undefined : connectionFailures.find(request.url)
    if (failure) this.#reportProxyError(requestId, request, failure.code, failure.status)
  }

  #reportProxyError(requestId: string, request: KnownRequest, reported: string, status: number): void {
    const raw = cut(reported.toLowerCase().replaceAll(/[^a-z0-9_]/g, '_'), 64).text
    const code = isProxyErrorCode(raw) ? raw : 'unknown'
    const data = {
      ...this.#context(request),
      code,
      request_id: requestId,
      status: status === 403 ? 403 : 502,
      method: request.method,
      ...(code === 'unknown' && { raw_code: raw }),
      resource_type: request.type,
    }
    this.#target.emit('proxy_error', 'Network.loadingFailed', data)
  }

  #forget(requestId: string): KnownRequest | undefined {
    const request = this.#requests.get(requestId)
    this.#requests.delete(requestId)
    if (this.#open.delete(requestId) && this.#open.size === 0) {
      clearTimeout(this.#timer)
      this.#timer = setTimeout(() => {
        this.#target.emit('network_idle', 'Network.loadingFinished', this.#target.context())
      }, idleMilliseconds)
      this.#timer.unref()
    }
    return request
  }

  #context({ url, frameId, loaderId }: KnownRequest): Record<string, unknown> {
    return {
      ...this.#target.context(url.slice(0, maxUrlLength)),
      ...(frameId && { frame_id: frameId }),
      ...(loaderId && { loader_id: loaderId }),
    }
  }
}

function contentType(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? 'text/plain'
}

/** Shortened, because long headers of a site would make the event too large to be kept. */
function shortHeaders(headers: Readonly<Record<string, string>>) {
  let left = 64 * 1024
  let isCut = false
  const short: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    const shortened = cut(String(value), maxHeaderLength)
    left -= name.length + shortened.text.length
    if (left < 0) return { headers: short, isCut: true }
    short[name] = shortened.text
    isCut ||= shortened.isCut
  }
  return { headers: short, isCut }
}
