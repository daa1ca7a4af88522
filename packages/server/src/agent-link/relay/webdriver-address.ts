import type { IncomingHttpHeaders } from 'node:http'
import { queryOf } from '@berth/runtime/http/query-string.ts'
import { readBearer, type SessionCredentials } from '../../access/session-credentials.ts'

interface WebDriverAddress extends SessionCredentials {
  /** Relative to the session's WebDriver root: `/session/…`. */
  readonly path: string
}

/**
 * Parses the target and credentials of a WebDriver request. Clients append their paths to the URL that they were given.
 * Some append after the query (`…/webdriver?jwt=T/session`). Others drop the query, and take the token as the password
 * in the URL, which they send as Basic, or as a bearer token.
 */
export function webDriverAddress(root: string, url: string, headers: IncomingHttpHeaders): WebDriverAddress {
  const [path = ''] = url.split('?', 1)
  const below = path.slice(root.length).replace(/\/+$/, '')
  const jwt = new URLSearchParams(queryOf(url)).get('jwt') ?? ''
  const end = jwt.indexOf('/')
  const [token, appended] = end === -1 ? [jwt, ''] : [jwt.slice(0, end), jwt.slice(end).replace(/\/+$/, '')]
  return { path: `${below}${appended}`, token: token || undefined, bearer: authorized(headers) }
}

function authorized({ authorization }: IncomingHttpHeaders): string | undefined {
  const [, credentials = ''] = /^basic +(\S+) *$/i.exec(authorization ?? '') ?? []
  const [, password] = /^[^:]*:(.+)$/.exec(Buffer.from(credentials, 'base64').toString()) ?? []
  return password ?? readBearer(authorization)
}
