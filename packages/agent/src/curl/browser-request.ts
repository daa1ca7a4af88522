import type { HeaderList, PageAnswer, PageRequest } from './hidden-page.ts'
import type { HiddenPages } from './hidden-pages.ts'
import { netError } from './net-error.ts'

/** As in Chromium, and in fetch. */
const maxRedirects = 20
const redirectStatuses: readonly number[] = [301, 302, 303, 307, 308]
/** These headers are for one server only and are removed when it redirects to another. */
const personalHeaders: readonly string[] = ['authorization', 'cookie']

export interface BrowserAnswer {
  readonly status: number
  /** The URL that responded, after redirects. */
  readonly url: string
  readonly headers: HeaderList
  /** Rejects when the time limit passes or the response breaks off. */
  readonly body: AsyncGenerator<Buffer>
}

interface SendOptions {
  readonly pages: HiddenPages
  readonly request: PageRequest
  readonly timeoutMilliseconds: number
  /** What must have arrived within the time limit. */
  readonly limits: 'head' | 'whole'
  /** Aborts when the caller disconnects, which ends the request. */
  readonly signal: AbortSignal
}

/** Sends a request as the browser and follows redirects as a browser would. */
export async function sendByBrowser(options: SendOptions): Promise<BrowserAnswer> {
  const { pages, request, timeoutMilliseconds, limits, signal: caller } = options
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(netError('ERR_TIMED_OUT')), timeoutMilliseconds)
  const { signal } = limit
  const leave = () => limit.abort(netError('ERR_ABORTED'))
  if (caller.aborted) leave()
  else caller.addEventListener('abort', leave)
  try {
    const page = await pages.take(signal)
    const end = onlyOnce((isWhole: boolean) => {
      clearTimeout(timer)
      if (isWhole) pages.release(page)
      else void pages.discard(page)
    })
    // Also if nobody reads the body.
    signal.addEventListener('abort', () => end(false))
    try {
      const { status, url, headers, read } = await before(
        signal,
        follow((next) => page.send(next), request),
      )
      if (limits === 'head') clearTimeout(timer)
      return { status, url, headers, body: bodyOf(read(), signal, end) }
    } catch (error) {
      end(false)
      throw page.isOpen ? error : netError('ERR_ABORTED', { cause: error })
    }
  } catch (error) {
    clearTimeout(timer)
    throw error
  }
}

async function* bodyOf(
  chunks: AsyncGenerator<Buffer>,
  signal: AbortSignal,
  end: (isWhole: boolean) => void,
): AsyncGenerator<Buffer> {
  let isWhole = false
  try {
    for (;;) {
      const next = await before(signal, chunks.next())
      if (next.done) break
      yield next.value
    }
    isWhole = true
  } finally {
    end(isWhole)
  }
}

function onlyOnce<Value>(act: (value: Value) => void): (value: Value) => void {
  let isDone = false
  return (value) => {
    if (isDone) return
    isDone = true
    act(value)
  }
}

async function follow(
  send: (request: PageRequest) => Promise<PageAnswer>,
  first: PageRequest,
): Promise<PageAnswer & { readonly url: string }> {
  let request = first
  for (let redirects = 0; ; redirects++) {
    const answer = await send(request)
    const location = headerOf(answer.headers, 'location')
    if (!redirectStatuses.includes(answer.status) || location === undefined) return { ...answer, url: request.url }

    await answer.drop()
    if (redirects === maxRedirects) throw netError('ERR_TOO_MANY_REDIRECTS')
    request = redirected(request, answer.status, location)
  }
}

function redirected(request: PageRequest, status: number, location: string): PageRequest {
  const from = new URL(request.url)
  const to = URL.parse(location, from)
  if (!to) throw netError('ERR_INVALID_RESPONSE')
  if (!/^https?:$/.test(to.protocol)) throw netError('ERR_UNSAFE_REDIRECT')
  const { method } = request
  const becomesGet = status === 303 ? method !== 'HEAD' : (status === 301 || status === 302) && method === 'POST'
  const isKept = (name: string) =>
    !(becomesGet && name.startsWith('content-')) && !(to.origin !== from.origin && personalHeaders.includes(name))
  return {
    url: to.href,
    method: becomesGet ? 'GET' : method,
    headers: request.headers.filter(([name]) => isKept(name.toLowerCase())),
    body: becomesGet ? undefined : request.body,
  }
}

function headerOf(headers: HeaderList, wanted: string): string | undefined {
  return headers.find(([name]) => name.toLowerCase() === wanted)?.[1]
}

async function before<Value>(signal: AbortSignal, work: Promise<Value>): Promise<Value> {
  work.catch(() => {}) // If it settles too late, its outcome is ignored.
  const aborted = Promise.withResolvers<never>()
  const abort = () => aborted.reject(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort)
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
