import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocket, WebSocketServer } from 'ws'
import { toDevToolsServer } from '../browser/devtools-server.ts'
import { BidiConnection } from './bidi-connection.ts'
import type { ClassicConnections } from './classic-connections.ts'

/** No size limit, as in Chromium itself, and no compression inside a machine. */
const unlimited = { maxPayload: 0, perMessageDeflate: false } as const

/**
 * Serves BiDi on a unix socket. The path of a client's address contains the port of Chromium's DevTools server and the
 * path of the browser; both change when the browser is restarted. A query parameter names the classic WebDriver session
 * that the client belongs to.
 */
export async function startBidiServer(socketPath: string, sessions: ClassicConnections): Promise<Server> {
  const websockets = new WebSocketServer({ noServer: true, ...unlimited })
  const server = createServer()
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    accept(websockets, sessions, request, socket, head).catch(() => socket.destroy())
  })
  server.listen(socketPath)
  await once(server, 'listening')
  return server
}

/** Completes the client's handshake once its connection to Chromium is open. */
async function accept(
  websockets: WebSocketServer,
  sessions: ClassicConnections,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const [address = '', session] = (request.url ?? '').split('?')
  let chromium: WebSocket
  try {
    chromium = await openChromium(address)
  } catch {
    socket.end('HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
    return
  }
  // Also when the client disconnects or its handshake is refused.
  socket.once('close', () => chromium.terminate())
  if (socket.destroyed) chromium.terminate()
  else {
    websockets.handleUpgrade(request, socket, head, (client) => {
      new BidiConnection(client, chromium, session === undefined ? undefined : { id: session, all: sessions })
    })
  }
}

async function openChromium(address: string): Promise<WebSocket> {
  const [, port, path] = /^\/(\d+)(\/.+)$/.exec(address) ?? []
  const chromium = new WebSocket(`ws://127.0.0.1:${port}${path}`, { ...unlimited, ...toDevToolsServer })
  await once(chromium, 'open')
  return chromium
}
