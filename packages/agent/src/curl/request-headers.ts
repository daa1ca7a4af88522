import { BerthError } from '@berth/contract/errors.ts'
import type { HeaderList } from './hidden-page.ts'

/** Headers of a single connection (RFC 9110 §7.6.1); the browser sets those of its own connection. */
const ofConnection: readonly string[] = [
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization', 'te', 'trailer'],
  ...['trailers', 'transfer-encoding', 'upgrade', 'content-length', 'expect', 'cookie2'],
]

export function isOfConnection(name: string): boolean {
  return ofConnection.includes(name.toLowerCase())
}

/** The headers of a JSON request, without those that the browser sets. */
export function wantedHeaders(headers: Readonly<Record<string, string>>): HeaderList {
  const entries = Object.entries(headers)
  if (entries.some(([name]) => name.toLowerCase() === 'host')) {
    throw new BerthError('field_not_supported', { field: 'headers.host', reason: 'the browser takes it from the URL.' })
  }
  return entries.filter(([name]) => !isOfConnection(name))
}

/** The headers of a raw request, without those that Node and berth have added. */
export function passedHeaders(rawHeaders: readonly string[], hasBody: boolean): HeaderList {
  const pairs: [string, string][] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    pairs.push([rawHeaders[index] as string, rawHeaders[index + 1] as string])
  }
  return pairs.filter(([name]) => {
    const lowerCase = name.toLowerCase()
    // Clients that send JSON set this header even without a body.
    if (lowerCase === 'content-type') return hasBody
    return !isOfConnection(lowerCase) && lowerCase !== 'host' && lowerCase !== 'x-request-id'
  })
}

/** The response headers that still describe the body: it is decoded, and sent over another connection. */
export function answerHeaders(headers: HeaderList): Record<string, string[]> {
  const isEncoded = headers.some(([name]) => name.toLowerCase() === 'content-encoding')
  const answer: Record<string, string[]> = {}
  for (const [name, value] of headers) {
    const lowerCase = name.toLowerCase()
    const isOfBody = lowerCase === 'content-length' && !isEncoded
    if ((isOfConnection(lowerCase) && !isOfBody) || lowerCase === 'content-encoding') continue
    answer[lowerCase] = [...(answer[lowerCase] ?? []), value]
  }
  return answer
}
