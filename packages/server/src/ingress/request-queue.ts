import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Clients with pipelining send a few. A client that sends more is disconnected. */
const maxWaitingRequests = 16
interface ConnectionQueue {
  isServing: boolean
  readonly waiting: (readonly [IncomingMessage, ServerResponse])[]
}

/**
 * Serves the requests of a connection one at a time. HTTP responses have to be in order anyway. So a client that sends
 * many requests and reads nothing makes the server hold one response instead of all.
 */
export class RequestQueue {
  readonly #serve: RequestListener
  readonly #lateBodyMilliseconds: number
  readonly #queues = new WeakMap<Socket, ConnectionQueue>()

  /** `lateBodyMilliseconds` limits how long the rest of a body may arrive after the response. */
  constructor(serve: RequestListener, lateBodyMilliseconds: number) {
    this.#serve = serve
    this.#lateBodyMilliseconds = lateBodyMilliseconds
  }

  isServing(socket: Socket): boolean {
    return this.#queues.get(socket)?.isServing ?? false
  }

  readonly enqueue = (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request
    // The request was read together with the one that ended the connection.
    if (socket.destroyed || socket.writableEnded) return
    const line = this.#queues.get(socket) ?? { isServing: false, waiting: [] }
    this.#queues.set(socket, line)
    if (!line.isServing) this.#begin(line, request, response)
    else if (line.waiting.length < maxWaitingRequests) line.waiting.push([request, response])
    else socket.destroy()
  }

  #begin(line: ConnectionQueue, request: IncomingMessage, response: ServerResponse): void {
    line.isServing = true
    if (hasBody(request) && !response.shouldKeepAlive) closeAfterBody(request, response)
    response.once('finish', () => this.#cutLateBody(request))
    // Fires when the response has been sent completely, or when the connection ends.
    response.once('close', () => {
      line.isServing = false
      const next = line.waiting.shift()
      if (next && !request.socket.destroyed) this.#begin(line, ...next)
    })
    this.#serve(request, response)
  }

  /**
   * Clients see the response only if they can send the rest of the body, but that must not keep the connection open
   * without limit.
   */
  #cutLateBody(request: IncomingMessage): void {
    if (request.complete) return
    setTimeout(() => {
      if (!request.complete) request.socket.destroy()
    }, this.#lateBodyMilliseconds).unref()
  }
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/**
 * Node.js would close the connection of a client that asks for that together with the response. While the rest of a body
 * still arrives, the kernel would then reset the connection, and the client would lose the response.
 */
function closeAfterBody(request: IncomingMessage, response: ServerResponse): void {
  response.shouldKeepAlive = true
  response.removeHeader('connection')
  response.once('finish', () => {
    if (request.complete) request.socket.end()
    else request.once('end', () => request.socket.end())
  })
}
