import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ConnectionLimits, limitConnections } from './connection-limits.ts'
import { RequestTurns } from './request-turns.ts'

/** How long a client may keep a stalled connection. */
export interface PatienceLimits {
  /** While it does not read a response. */
  readonly unreadMilliseconds: number
  /** While it sends the rest of a body after the response. */
  readonly lateBodyMilliseconds: number
}

const defaultPatience: PatienceLimits = { unreadMilliseconds: 5 * 60 * 1000, lateBodyMilliseconds: 30_000 }

export interface FrontServerOptions {
  readonly http: ServerOptions
  readonly limits: ConnectionLimits
  readonly patience?: PatienceLimits
  readonly onRequest: RequestListener
  readonly onUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
}

/**
 * An HTTP server that limits what each client can use, even without a key: connections of one address, requests queued
 * on one connection, unread responses and endless bodies.
 */
export function createFrontServer({
  http,
  limits,
  patience = defaultPatience,
  onRequest,
  onUpgrade,
}: FrontServerOptions): Server {
  const server = createServer(http)
  const turns = new RequestTurns(onRequest, patience.lateBodyMilliseconds)
  limitConnections(server, limits)
  server.on('request', turns.take)
  server.on('upgrade', (request, socket, head) => {
    // An upgrade cannot share its connection with pending responses.
    if (socket.writableEnded || turns.isServing(socket as Socket)) socket.destroy()
    else onUpgrade(request, socket, head)
  })
  // Fires after this time without traffic, and when a keep-alive connection has been idle for too long.
  server.setTimeout(patience.unreadMilliseconds, (socket) => {
    const isAtWork = turns.isServing(socket) && socket.writableLength === 0
    if (isAtWork) socket.setTimeout(patience.unreadMilliseconds)
    else socket.destroy()
  })
  return server
}
