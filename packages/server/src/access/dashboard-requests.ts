import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { dashboardApiPath, dashboardHeader } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'

/** The only path that the cookie is sent to. No address of a session is below it. */
const cookiePath = '/dashboard'
const tokenForm = /^[\w-]{43}$/

/** All ports of a host share cookies, and several berths may run on one host. */
function cookieName({ host = '' }: IncomingHttpHeaders): string {
  return `berth_dashboard_${/:(\d{1,5})$/.exec(host)?.[1] ?? '0'}`
}

export function sessionCookie(
  headers: IncomingHttpHeaders,
  token: string,
  { seconds, isSecure }: { readonly seconds: number; readonly isSecure: boolean },
): string {
  const attributes = [`Path=${cookiePath}`, `Max-Age=${seconds}`, 'HttpOnly', 'SameSite=Strict']
  return [`${cookieName(headers)}=${token}`, ...attributes, ...(isSecure ? ['Secure'] : [])].join('; ')
}

/**
 * Turns a request of the dashboard into one of the API: removes the prefix from its path, and sends the token of its
 * cookie as a bearer token. All later code, also on other servers, sees an ordinary request without a cookie.
 */
export function receiveDashboardRequest(request: IncomingMessage): void {
  const { url = '', headers } = request
  if (!url.startsWith(`${dashboardApiPath}/`)) return
  const token = isFromDashboard(headers) ? readToken(headers) : undefined
  request.url = url.slice(dashboardApiPath.length)
  replaceCredentials(request, token)
}

/** Throws unless the dashboard itself sent the request. */
export function requireDashboard({ headers, url = '' }: Pick<IncomingMessage, 'headers' | 'url'>): void {
  if (isFromDashboard(headers)) return
  throw new BerthError('unauthorized', { reason: `${pathOf(url)} is only for the dashboard. Use an API key.` })
}

/**
 * Other origins can send neither: the first header needs CORS permission, which berth never gives, and only the browser
 * sets the second.
 */
function isFromDashboard(headers: IncomingHttpHeaders): boolean {
  return headers[dashboardHeader] !== undefined && (headers['sec-fetch-site'] ?? 'same-origin') === 'same-origin'
}

function readToken(headers: IncomingHttpHeaders): string | undefined {
  const name = cookieName(headers)
  for (const pair of (headers.cookie ?? '').split(';')) {
    const [key, value = ''] = pair.trim().split('=', 2)
    if (key === name && tokenForm.test(value)) return value
  }
  return undefined
}

function replaceCredentials(request: IncomingMessage, token: string | undefined): void {
  const kept = (name: string) => !['cookie', 'authorization'].includes(name.toLowerCase())
  const raw = request.rawHeaders.flatMap((text, index, all) =>
    index % 2 === 0 && kept(text) ? [text, all[index + 1] ?? ''] : [],
  )
  delete request.headers.cookie
  delete request.headers.authorization
  if (token !== undefined) {
    request.headers.authorization = `Bearer ${token}`
    raw.push('authorization', request.headers.authorization)
  }
  request.rawHeaders = raw
}
