import type { IncomingMessage, Server, ServerResponse } from 'node:http'

const waiting = new WeakSet<IncomingMessage>()

/** Makes clients that send `Expect: 100-continue` wait with the body until it is known who reads it. */
export function deferContinue(server: Server): void {
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    waiting.add(request)
    server.emit('request', request, response)
  })
}

/** Sends 100 Continue once, if the client waits for it. */
export function sendContinue(request: IncomingMessage, response: ServerResponse): void {
  if (waiting.delete(request)) response.writeContinue()
}
