import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { ClientConnection } from './client-connection.ts'
import { endWithFailure } from './failure-reply.ts'
import { notAbsolute, sendAnswer, startRequest } from './forward.ts'
import { pairs, upgradeHeaders } from './headers.ts'

/** Whether a request is to become another protocol. One with a body is not, nor one that only offers HTTP/2. */
export function isUpgrade({ headers }: IncomingMessage): boolean {
  const hasBody = 'transfer-encoding' in headers || Number(headers['content-length'] ?? 0) > 0
  return headers.upgrade !== undefined && !hasBody && !/^h2c?\b/i.test(headers.upgrade)
}

/** Serves an upgrade in absolute form, as websocket clients other than Chromium send it. */
export function forwardUpgrade(client: ClientConnection, request: IncomingMessage, head: Buffer): void {
  const { socket } = client
  const started = startRequest(client, request, request.headers.upgrade)
  if (!started) {
    endWithFailure(socket, notAbsolute())
    return
  }
  const { onward, way } = started
  if (head.length > 0) socket.unshift(head)
  client.beginExchange()
  onward.once('upgrade', (answer, server: Socket, serverHead) => {
    socket.write(acceptance(answer))
    if (serverHead.length > 0) server.unshift(serverHead)
    client.becomeTunnel(server)
  })
  onward.once('response', (answer) => {
    const response = new ServerResponse(request)
    response.assignSocket(socket)
    response.once('finish', () => socket.destroySoon())
    sendAnswer(answer, response, { isKept: false, way })
  })
  onward.on('error', (error) => endWithFailure(socket, client.failureOf(error)))
  onward.end()
}

function acceptance(answer: IncomingMessage): string {
  const lines = pairs(upgradeHeaders(answer.rawHeaders)).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`
}
