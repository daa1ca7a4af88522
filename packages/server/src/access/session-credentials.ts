import type { IncomingMessage } from 'node:http'
import { queryOf } from '@berth/runtime/http/query-string.ts'

/** The credentials of a request to a session. */
export interface SessionCredentials {
  /** The `jwt` of the query. */
  readonly token: string | undefined
  /** The bearer value of the `Authorization` header: a session's token or an API key. */
  readonly bearer: string | undefined
}

export interface TokenQuery {
  readonly token: string | undefined
  /** The original query with its question mark, without any spelling of the token. Empty when nothing is left. */
  readonly rest: string
  /** `/json/version`, when the client appended it to a URL that ends with the token. Playwright does so up to 1.52. */
  readonly appendedPath: string | undefined
}

/**
 * Splits the query of a request into the session's token and the rest. This is the only place that recognizes the
 * token, so that nothing that is accepted as one, in any encoding, is passed on.
 */
export function readTokenQuery(url: string): TokenQuery {
  const rest: string[] = []
  let value: string | undefined
  for (const part of queryOf(url).split('&')) {
    const [name, text] = [...new URLSearchParams(part)][0] ?? []
    if (name === 'jwt') value ??= text
    else if (part !== '') rest.push(part)
  }
  const [, token, appendedPath] = /^(.*?)(\/json\/version)\/?$/.exec(value ?? '') ?? [undefined, value, undefined]
  return { token: token || undefined, rest: rest.length > 0 ? `?${rest.join('&')}` : '', appendedPath }
}

export function readSessionCredentials({ url = '', headers }: Pick<IncomingMessage, 'url' | 'headers'>) {
  return { token: readTokenQuery(url).token, bearer: readBearer(headers.authorization) } satisfies SessionCredentials
}

/** The value of a header `Authorization: Bearer …`. */
export function readBearer(authorization: string | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
}
