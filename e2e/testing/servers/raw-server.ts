import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

export interface RawServer extends AsyncDisposable {
  readonly port: number
  /** Stops at once, like a server that dies: closes its listener and resets open connections. */
  stop(): void
}

/** A server on loopback with access to the raw bytes. */
export async function startRawServer(onConnection: (socket: Socket) => void): Promise<RawServer> {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
    onConnection(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    stop,
    async [Symbol.asyncDispose]() {
      stop()
    },
  }
}

/** Calls back with the first line of every request without a body. */
export function onRequests(socket: Socket, answer: (method: string, path: string, head: string) => void): void {
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
    for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
      const head = text.slice(0, end)
      text = text.slice(end + 4)
      const [method = '', path = ''] = head.split(' ')
      answer(method, path, head)
    }
  })
}
