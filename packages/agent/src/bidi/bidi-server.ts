import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocket, WebSocketServer } from 'ws'
import { BidiConnection } from './bidi-connection.ts'

/** Any size in one message, as on the way to Chromium itself; nothing is compressed inside of a machine. */
const unlimited = { maxPayload: 0, perMessageDeflate: false } as const

/**
 * Serves BiDi on a unix socket. The path of a client's address is the port of Chromium's DevTools server and the path of
 * the browser there: of a browser that is started again both are new.
 */
export async function startBidiServer(socketPath: string): Promise<Server> {
  const websockets = new WebSocketServer({ noServer: true, ...unlimited })
  const server = createServer()
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    void accept(websockets, request, socket, head)
  })
  server.listen(socketPath)
  await once(server, 'listening')
  return server
}

/** The client is let in when its line to Chromium stands. */
async function accept(
  websockets: WebSocketServer,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const [, port, path] = /^\/(\d+)(\/.+)$/.exec(request.url ?? '') ?? []
  const chromium = new WebSocket(`ws://127.0.0.1:${port}${path}`, unlimited)
  try {
    await once(chromium, 'open')
  } catch {
    socket.end('HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
    return
  }
  if (socket.destroyed) return chromium.terminate()
  socket.once('close', () => chromium.terminate())
  websockets.handleUpgrade(request, socket, head, (client) => new BidiConnection(client, chromium))
}
