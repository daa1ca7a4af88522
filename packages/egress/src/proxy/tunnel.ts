import type { IncomingMessage } from 'node:http'
import { EgressFailure } from '../egress-failure.ts'
import type { ClientConnection } from './client-connection.ts'
import { endWithFailure } from './failure-reply.ts'
import { parseTunnelTarget } from './request-target.ts'

/** Serves a CONNECT: opens a connection and then only copies bytes. `head` is what the client sent without waiting. */
export async function openTunnel(client: ClientConnection, request: IncomingMessage, head: Buffer): Promise<void> {
  const destination = parseTunnelTarget(request.url ?? '')
  if (!destination) {
    endWithFailure(client.socket, new EgressFailure('bad-request', 'CONNECT takes host:port.'))
    return
  }
  if (head.length > 0) client.socket.unshift(head)
  // A client that ends without having sent anything does not want the tunnel any more.
  const ended = new AbortController()
  const end = () => ended.abort()
  client.socket.once('end', end)
  try {
    const server = await client.connect(destination, client.wayTo(destination), ended.signal)
    client.socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    client.becomeTunnel(server)
  } catch (error) {
    const failure = client.failureOf(error)
    // Chromium takes any answer for one of its proxy; without one, it tells that the proxy cannot be reached.
    if (failure.isOfProxyItself) client.socket.destroy()
    else endWithFailure(client.socket, failure)
  } finally {
    client.socket.off('end', end)
  }
}
