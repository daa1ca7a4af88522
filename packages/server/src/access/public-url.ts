import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

const hostHeader = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/** The URL at which the caller reaches berth: the configured one, or otherwise the host of the request. */
export function publicUrlOf(request: IncomingMessage, configured: string | undefined): string {
  if (configured !== undefined) return configured
  const host = request.headers.host ?? ''
  return `http://${hostHeader.test(host) ? host : ownAddress(request.socket)}`
}

function ownAddress({ localAddress = '127.0.0.1', localPort, localFamily }: Socket): string {
  return localFamily === 'IPv6' ? `[${localAddress}]:${localPort}` : `${localAddress}:${localPort}`
}
