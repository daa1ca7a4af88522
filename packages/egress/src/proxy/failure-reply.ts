import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { proxyErrorHeader } from '@berth/contract/egress/egress-settings.ts'
import type { EgressFailure } from '../egress-failure.ts'

/**
 * Answers with the failure. Connections that failed get an empty body: then Chromium shows its own error page and a
 * navigation fails, as it would without a proxy.
 */
export function answerFailure(response: ServerResponse, failure: EgressFailure): void {
  if (response.writableEnded || response.destroyed) return
  if (response.headersSent) {
    response.destroy()
    return
  }
  // What is left of the request is not waited for.
  const connection = response.req.complete && response.shouldKeepAlive ? 'keep-alive' : 'close'
  response.writeHead(failure.status, { ...headersOf(failure), connection })
  response.end(bodyOf(failure))
}

/** The same for a connection without an HTTP response of its own: a CONNECT, or bytes that are no request. */
export function endWithFailure(socket: Socket, failure: EgressFailure): void {
  if (!socket.writable) return
  const lines = Object.entries(headersOf(failure)).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(
    `HTTP/1.1 ${failure.status} ${STATUS_CODES[failure.status]}\r\n${lines.join('')}connection: close\r\n\r\n${bodyOf(failure)}`,
  )
  // Ends only what was sent; a client that sends on and on would be read for ever.
  socket.destroySoon()
}

function headersOf(failure: EgressFailure): Record<string, string> {
  return {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': String(Buffer.byteLength(bodyOf(failure))),
    'x-berth-egress': failure.kind,
    ...(failure.proxyError !== undefined && { [proxyErrorHeader]: failure.proxyError }),
  }
}

function bodyOf({ message }: EgressFailure): string {
  return message === '' ? '' : `${message}\n`
}
