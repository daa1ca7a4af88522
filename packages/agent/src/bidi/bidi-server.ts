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
  let chromium: WebSocket
  try {
    chromium = await openChromium(request.url ?? '')
  } catch {
    socket.end('HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
    return
  }
  // A client that has gone, or whose handshake is refused, leaves nothing behind.
  socket.once('close', () => chromium.terminate())
  if (socket.destroyed) chromium.terminate()
  else websockets.handleUpgrade(request, socket, head, (client) => new BidiConnection(client, chromium))
}

async function openChromium(address: string): Promise<WebSocket> {
  const [, port, path] = /^\/(\d+)(\/.+)$/.exec(address) ?? []
  const chromium = new WebSocket(`ws://127.0.0.1:${port}${path}`, unlimited)
  await once(chromium, 'open')
  return chromium
}
