import { once } from 'node:events'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls, TLSSocket } from 'node:tls'

/** Short, because another server is in the same network: it responds soon or not at all. */
export const connectLimitMilliseconds = 3_000
const keepAliveMilliseconds = 30_000

/** Connects to another server. Rejects after the time limit. */
export async function connectToPeer(address: URL): Promise<Socket> {
  const isTls = address.protocol === 'https:'
  const host = address.hostname.replace(/^\[|\]$/g, '')
  const port = Number(address.port || (isTls ? 443 : 80))
  const socket = isTls
    ? connectTls({ host, port, ...(isIP(host) === 0 && { servername: host }) })
    : connect({ host, port })
  try {
    await once(socket, isTls ? 'secureConnect' : 'connect', { signal: AbortSignal.timeout(connectLimitMilliseconds) })
  } catch (error) {
    socket.on('error', () => {})
    socket.destroy()
    throw error
  }
  socket.setNoDelay(true)
  // A host that has lost power sends nothing.
  socket.setKeepAlive(true, keepAliveMilliseconds)
  return socket
}

/** Aborts the request if its connection takes too long. */
export function limitConnecting(socket: Socket): void {
  if (!socket.connecting) return
  const limit = setTimeout(() => {
    socket.destroy(Object.assign(new Error('the server does not accept the connection'), { code: 'ETIMEDOUT' }))
  }, connectLimitMilliseconds)
  socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', () => {
    clearTimeout(limit)
    socket.setKeepAlive(true, keepAliveMilliseconds)
  })
  socket.once('close', () => clearTimeout(limit))
}
