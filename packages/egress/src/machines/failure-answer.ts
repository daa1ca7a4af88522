import { proxyErrorHeader } from '@berth/contract/egress/machine-protocol.ts'
import type { EgressFailure } from '../egress-failure.ts'

/** The longest beginning of a request that tells it from anything else. */
const maxMethodBytes = 20

/** Whether bytes begin a request in plain HTTP; undefined when there are too few of them to tell. */
export function beginsRequest(bytes: Buffer): boolean | undefined {
  const beginning = bytes.toString('latin1', 0, maxMethodBytes)
  if (/^[A-Z]{3,}(-[A-Z]+)? /.test(beginning)) return true
  return bytes.length < maxMethodBytes && /^[A-Z]*(-[A-Z]*)?$/.test(beginning) ? undefined : false
}

/**
 * What a page is answered whose request in plain HTTP has not left. Failures of a proxy have no body: then Chromium shows
 * its own error page and a navigation fails, as one by TLS does.
 */
export function failureAnswer(failure: EgressFailure): string {
  const isPolicy = failure.kind === 'not-allowed'
  const body = isPolicy ? 'The settings of this session do not allow this host.\n' : ''
  return [
    isPolicy ? 'HTTP/1.1 403 Forbidden' : 'HTTP/1.1 502 Bad Gateway',
    `${proxyErrorHeader}: ${failure.code}`,
    'content-type: text/plain; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
    '',
    body,
  ].join('\r\n')
}
