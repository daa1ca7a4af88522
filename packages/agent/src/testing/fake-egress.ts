import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import type { StartedAgent } from './start-agent.ts'

/**
 * In the place of egress: answers every request in plain HTTP, whose URL is then whole, and opens no tunnel. Chromium
 * greets with SOCKS5 first (no credentials, one name), other programs send the whole URL themselves.
 */
export async function startFakeEgress(agent: StartedAgent, answer: RequestListener): Promise<AsyncDisposable> {
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/')) request.url = `http://${request.headers.host}${request.url}`
    answer(request, response)
  })
  server.on('connect', (_request: IncomingMessage, socket) => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'))
  const [serveHttp] = server.listeners('connection')
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    socket.on('error', () => {})
    void greet(socket).then(() => serveHttp?.call(server, socket))
  })
  server.listen({ path: agent.config.egress_socket, writableAll: true, readableAll: true })
  await once(server, 'listening')
  return {
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function greet(socket: Socket): Promise<void> {
  await once(socket, 'readable')
  const first: Buffer = socket.read()
  if (first?.[0] !== 5) {
    if (first) socket.unshift(first)
    return
  }
  socket.write(Buffer.from([5, 0]))
  await once(socket, 'readable')
  socket.read()
  socket.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
}
