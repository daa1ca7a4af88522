import type { IncomingHttpHeaders } from 'node:http'

/*
 * For requests that pass through a session to somebody else. Their headers are those of the caller's program and of that
 * other server; but a caller may be a page in a browser of its own, to whom berth is an origin as good as any, and
 * between the caller and berth may stand proxies that add theirs.
 */

type Headers = Readonly<Record<string, string | string[] | undefined>>

/** Of the connection to berth, of the official clients themselves, and of proxies on the way. */
const ofTheWay =
  /^(host|connection|keep-alive|proxy-.*|te|trailers?|transfer-encoding|upgrade|expect|x-stainless-.*|x-kernel-.*|forwarded|via|x-forwarded-.*|x-real-ip|x-request-id|accept-encoding|sec-fetch-.*)$/

/** What a browser says of itself and keeps for berth's origin. */
const ofCallersBrowser = /^(cookie|origin|referer|user-agent|accept-language|sec-.*|dnt|priority)$/

/** What programs call themselves when nobody has told them a name. */
const ofLibrary = /^(node|undici|(\S*kernel\S*)(\/.*)?)$/i

/** What a page may see of an answer, and what is of no effect on berth's origin. */
const forBrowsers: readonly string[] = [
  ...['content-type', 'content-length', 'content-range', 'content-disposition', 'content-language'],
  ...['accept-ranges', 'last-modified', 'etag', 'cache-control', 'date', 'expires', 'age', 'retry-after'],
  ...['x-should-retry', 'x-request-id'],
]

/** Of the connection to the agent; and what another server says about its own origin is not for it to say about berth's. */
const neverAnswered =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|access-control-.*|strict-transport-security|alt-svc|clear-site-data|service-worker-.*|public-key-pins.*|nel|report-to|reporting-endpoints)$/

/** Whether the caller is a page, or a person who looks: what is answered could act on berth's own origin. */
export function isBrowser(headers: IncomingHttpHeaders): boolean {
  if (headers['sec-fetch-site'] !== undefined || headers.origin !== undefined) return true
  // Over plain HTTP a browser that is told to open an address says nothing else of itself.
  return headers['x-stainless-lang'] === undefined && /^Mozilla\//.test(headers['user-agent'] ?? '')
}

/** What goes on to the other server; `content-length` stays for the way to the agent. */
export function passedRequestHeaders(headers: IncomingHttpHeaders): Headers {
  const fromBrowser = isBrowser(headers)
  return keep(headers, (name, value) => {
    if (ofTheWay.test(name) || (fromBrowser && ofCallersBrowser.test(name))) return false
    if (name === 'user-agent') return !ofLibrary.test(String(value).split(' ')[0] ?? '')
    // A library's way to say nothing; the browser has languages of its own.
    return name !== 'accept-language' || value !== '*'
  })
}

/** What of the other server's answer goes on to the caller. */
export function passedAnswerHeaders(answer: IncomingHttpHeaders, caller: IncomingHttpHeaders): Headers {
  if (isBrowser(caller)) return keep(answer, (name) => forBrowsers.includes(name))
  return keep(answer, (name) => !neverAnswered.test(name))
}

function keep(headers: IncomingHttpHeaders, isKept: (name: string, value: unknown) => boolean): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name, value]) => isKept(name, value)))
}
