import type { Socket } from 'node:net'
import type { HostAndPort } from '@berth/contract/egress/host.ts'
// Performs the handshake of RFC 1928 and RFC 1929 over an existing connection.
import { SocksClient } from 'socks'
import { EgressFailure, type FailureKind } from '../egress-failure.ts'
import { proxyAnswerLimitMilliseconds } from './time-limit.ts'

interface SocksTunnelOptions {
  readonly destination: HostAndPort
  readonly username: string | undefined
  readonly password: string | undefined
  readonly signal: AbortSignal
}

/** Requests a tunnel over a connection to a SOCKS5 proxy. The connection then is the tunnel, or is destroyed. */
export async function openSocksTunnel(
  socket: Socket,
  { destination: { host, port }, username, password, signal }: SocksTunnelOptions,
): Promise<Socket> {
  const abort = () => socket.destroy(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  const hasCredentials = username !== undefined || password !== undefined
  try {
    await SocksClient.createConnection({
      existing_socket: socket,
      // The library requires an address, although the connection exists already.
      proxy: {
        host: 'proxy',
        port: 1,
        type: 5,
        ...(hasCredentials && { userId: username ?? '', password: password ?? '' }),
      },
      command: 'connect',
      destination: { host: host.kind === 'name' ? host.name : host.address, port },
      // Our own limit expires first, and its error names the cause.
      timeout: proxyAnswerLimitMilliseconds + 1_000,
    })
    return socket
  } catch (error) {
    socket.destroy()
    signal.throwIfAborted()
    // The library's error contains the password.
    throw new EgressFailure(kindOf((error as Error).message))
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

function kindOf(message: string): FailureKind {
  if (/authentication|NotAllowed|no accepted/i.test(message)) return 'proxy-rejected'
  return /timed out|TTLExpired/i.test(message) ? 'proxy-timeout' : 'proxy-failed'
}
