import { proxyErrorHeader } from '@berth/contract/egress/machine-protocol.ts'
import type { EgressFailure } from '../../egress-failure.ts'

/** The longest prefix that is needed to recognize an HTTP request. */
const maxMethodBytes = 20

/** Whether the bytes start a plain HTTP request. Undefined when there are too few bytes to decide. */
export function beginsRequest(bytes: Buffer): boolean | undefined {
  const beginning = bytes.toString('latin1', 0, maxMethodBytes)
  if (/^[A-Z]{3,}(-[A-Z]+)? /.test(beginning)) return true
  return bytes.length < maxMethodBytes && /^[A-Z]*(-[A-Z]*)?$/.test(beginning) ? undefined : false
}

/**
 * The response to a plain HTTP request that could not be sent. Proxy failures have no body: Chromium then shows its own
 * error page and the navigation fails, as it does over TLS.
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
