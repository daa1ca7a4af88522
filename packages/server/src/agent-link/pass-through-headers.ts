import type { IncomingHttpHeaders } from 'node:http'

/*
 * Header rules for requests that pass through a session to another server. The headers belong to the caller's program
 * and to that server. But the caller may be a page in a browser, to which berth is an origin, and proxies between the
 * caller and berth may add headers of their own.
 */

type Headers = Readonly<Record<string, string | string[] | undefined>>

/** Headers of the connection to berth, of the official clients, and of proxies in between. */
const hopByHopHeaders =
  /^(host|connection|keep-alive|proxy-.*|te|trailers?|transfer-encoding|upgrade|expect|x-stainless-.*|x-kernel-.*|forwarded|via|x-forwarded-.*|x-real-ip|x-request-id|accept-encoding|sec-fetch-.*)$/

/** Headers that a browser adds about itself and for berth's origin. */
const callerBrowserHeaders = /^(cookie|origin|referer|user-agent|accept-language|sec-.*|dnt|priority)$/

/** Default user agents of libraries. */
const libraryUserAgents = /^(node|undici|(\S*kernel\S*)(\/.*)?)$/i

/** Response headers that a page may see and that have no effect on berth's origin. */
const headersForBrowsers: readonly string[] = [
  ...['content-type', 'content-length', 'content-range', 'content-disposition', 'content-language'],
  ...['accept-ranges', 'last-modified', 'etag', 'cache-control', 'date', 'expires', 'age', 'retry-after'],
  ...['x-should-retry', 'x-request-id'],
]

/**
 * Headers of the connection to the agent, and headers with which a server makes statements about its origin, which here
 * would be berth's.
 */
const blockedResponseHeaders =
  /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|access-control-.*|strict-transport-security|alt-svc|clear-site-data|service-worker-.*|public-key-pins.*|nel|report-to|reporting-endpoints)$/

/** Whether the caller is a page or a browser user, so that response headers could affect berth's own origin. */
export function isBrowser(headers: IncomingHttpHeaders): boolean {
  if (headers['sec-fetch-site'] !== undefined || headers.origin !== undefined) return true
  // Over plain HTTP, a browser that navigates sends nothing else about itself.
  return headers['x-stainless-lang'] === undefined && /^Mozilla\//.test(headers['user-agent'] ?? '')
}

/** The request headers to forward. `content-length` is needed for the connection to the agent. */
export function passedRequestHeaders(headers: IncomingHttpHeaders): Headers {
  const fromBrowser = isBrowser(headers)
  return keep(headers, (name, value) => {
    if (hopByHopHeaders.test(name) || (fromBrowser && callerBrowserHeaders.test(name))) return false
    if (name === 'user-agent') return !libraryUserAgents.test(String(value).split(' ')[0] ?? '')
    // Libraries send `*` for no preference. The browser adds its own languages.
    return name !== 'accept-language' || value !== '*'
  })
}

/** The response headers to forward to the caller. */
export function passedResponseHeaders(answer: IncomingHttpHeaders, caller: IncomingHttpHeaders): Headers {
  if (isBrowser(caller)) return keep(answer, (name) => headersForBrowsers.includes(name))
  return keep(answer, (name) => !blockedResponseHeaders.test(name))
}

function keep(headers: IncomingHttpHeaders, isKept: (name: string, value: unknown) => boolean): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name, value]) => isKept(name, value)))
}
