import { queryOf } from '@berth/runtime/http/query-string.ts'

/** The query of a request as it came, with its question mark, but for the session's token. */
export function queryWithoutToken(url: string): string {
  const kept = queryOf(url)
    .split('&')
    .filter((part) => part !== '' && !part.startsWith('jwt='))
  return kept.length > 0 ? `?${kept.join('&')}` : ''
}
