import type { Socket } from 'node:net'
import type { HostAndPort } from '@berth/contract/egress/host.ts'
// The handshake of RFC 1928 and RFC 1929 over a connection that is there already.
import { SocksClient } from 'socks'
import { EgressFailure, type FailureKind } from '../egress-failure.ts'
import { proxyAnswerLimitMilliseconds } from './time-limit.ts'

interface SocksTunnelOptions {
  readonly destination: HostAndPort
  readonly username: string | undefined
  readonly password: string | undefined
  readonly signal: AbortSignal
}

/** Asks a SOCKS5 proxy, over a connection to it, for a tunnel. The connection is the tunnel then, or destroyed. */
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
      // Where the proxy stands does not matter any more, but the library wants to be told.
      proxy: {
        host: 'proxy',
        port: 1,
        type: 5,
        ...(hasCredentials && { userId: username ?? '', password: password ?? '' }),
      },
      command: 'connect',
      destination: { host: host.kind === 'name' ? host.name : host.address, port },
      // Ours comes first, and tells what it was.
      timeout: proxyAnswerLimitMilliseconds + 1_000,
    })
    return socket
  } catch (error) {
    socket.destroy()
    signal.throwIfAborted()
    // The library's own error holds the password.
    throw new EgressFailure(kindOf((error as Error).message))
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

function kindOf(message: string): FailureKind {
  if (/authentication|NotAllowed|no accepted/i.test(message)) return 'proxy-rejected'
  return /timed out|TTLExpired/i.test(message) ? 'proxy-timeout' : 'proxy-failed'
}
