import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ConnectionLimits, limitConnections } from './connection-limits.ts'
import { RequestQueue } from './request-queue.ts'

/** How long a client may keep a stalled connection. */
export interface StallLimits {
  /** While it does not read a response. */
  readonly unreadMilliseconds: number
  /** While it sends the rest of a body after the response. */
  readonly lateBodyMilliseconds: number
}

const defaultStallLimits: StallLimits = { unreadMilliseconds: 5 * 60 * 1000, lateBodyMilliseconds: 30_000 }

export interface IngressServerOptions {
  readonly http: ServerOptions
  readonly limits: ConnectionLimits
  readonly stallLimits?: StallLimits
  readonly onRequest: RequestListener
  readonly onUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
}

/**
 * An HTTP server that limits what each client can use, even without a key: connections of one address, requests queued
 * on one connection, unread responses and endless bodies.
 */
export function createIngressServer({
  http,
  limits,
  stallLimits = defaultStallLimits,
  onRequest,
  onUpgrade,
}: IngressServerOptions): Server {
  const server = createServer(http)
  const queue = new RequestQueue(onRequest, stallLimits.lateBodyMilliseconds)
  limitConnections(server, limits)
  server.on('request', queue.enqueue)
  server.on('upgrade', (request, socket, head) => {
    // An upgrade cannot share its connection with pending responses.
    if (socket.writableEnded || queue.isServing(socket as Socket)) socket.destroy()
    else onUpgrade(request, socket, head)
  })
  // Fires after this time without traffic, and when a keep-alive connection has been idle for too long.
  server.setTimeout(stallLimits.unreadMilliseconds, (socket) => {
    const isAtWork = queue.isServing(socket) && socket.writableLength === 0
    if (isAtWork) socket.setTimeout(stallLimits.unreadMilliseconds)
    else socket.destroy()
  })
  return server
}
