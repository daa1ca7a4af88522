import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Clients that send ahead send a few; whoever sends more loses the connection. */
const maxWaitingRequests = 16
interface Line {
  isServing: boolean
  readonly waiting: (readonly [IncomingMessage, ServerResponse])[]
}

/**
 * Serves the requests of one connection one after the other. HTTP sends their answers in order anyway, and so a client
 * that sends many and reads nothing makes the server hold one answer instead of all.
 */
export class RequestTurns {
  readonly #serve: RequestListener
  readonly #lateBodyMilliseconds: number
  readonly #lines = new WeakMap<Socket, Line>()

  /** For `lateBodyMilliseconds` the rest of a body may come when its request has been answered. */
  constructor(serve: RequestListener, lateBodyMilliseconds: number) {
    this.#serve = serve
    this.#lateBodyMilliseconds = lateBodyMilliseconds
  }

  isServing(socket: Socket): boolean {
    return this.#lines.get(socket)?.isServing ?? false
  }

  readonly take = (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request
    // What was read together with the request that ended the connection.
    if (socket.destroyed || socket.writableEnded) return
    const line = this.#lines.get(socket) ?? { isServing: false, waiting: [] }
    this.#lines.set(socket, line)
    if (!line.isServing) this.#begin(line, request, response)
    else if (line.waiting.length < maxWaitingRequests) line.waiting.push([request, response])
    else socket.destroy()
  }

  #begin(line: Line, request: IncomingMessage, response: ServerResponse): void {
    line.isServing = true
    response.once('finish', () => this.#cutLateBody(request))
    // After its last byte was taken by the client's side, or with the end of the connection.
    response.once('close', () => {
      line.isServing = false
      const next = line.waiting.shift()
      if (next && !request.socket.destroyed) this.#begin(line, ...next)
    })
    this.#serve(request, response)
  }

  /** A client sees an answer only when it may send the rest of its body; but it must not keep the connection with that. */
  #cutLateBody(request: IncomingMessage): void {
    if (request.complete) return
    setTimeout(() => {
      if (!request.complete) request.socket.destroy()
    }, this.#lateBodyMilliseconds).unref()
  }
}
