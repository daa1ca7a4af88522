import type { IncomingMessage } from 'node:http'
import { queryOf } from '@berth/runtime/http/query-string.ts'

/** What a request shows to be let into a session. */
export interface SessionCredentials {
  /** The `jwt` of the query. */
  readonly token: string | undefined
  /** The bearer value of the header `Authorization`: a session's token or an API key. */
  readonly bearer: string | undefined
}

export interface TokenQuery {
  readonly token: string | undefined
  /** The query as it came, with its question mark, without any spelling of the token. Empty when nothing is left. */
  readonly rest: string
  /** `/json/version`, when the client has appended it to an address that ends in the token, as Playwright does up to 1.52. */
  readonly appendedPath: string | undefined
}

/**
 * Splits a request's query into the session's token and the rest. The only place that looks for the token: what is
 * accepted as one, in whatever encoding, is never passed on.
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
