import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ConnectionLimits, limitConnections } from './connection-limits.ts'
import { RequestTurns } from './request-turns.ts'

/** How long a client may keep a connection without getting on. */
export interface PatienceLimits {
  /** With an answer that it does not read. */
  readonly unreadMilliseconds: number
  /** With the rest of a body whose request has been answered. */
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
 * An HTTP server on which no client can take what others need: connections of one address, requests that wait on one
 * connection, answers that nobody reads and bodies that never end are all bounded, also for clients without a key.
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
    // An upgrade cannot share its connection with answers that are still to come.
    if (socket.writableEnded || turns.isServing(socket as Socket)) socket.destroy()
    else onUpgrade(request, socket, head)
  })
  // Comes when nothing was read or written for so long, and at the end of the time between two requests.
  server.setTimeout(patience.unreadMilliseconds, (socket) => {
    const isAtWork = turns.isServing(socket) && socket.writableLength === 0
    if (isAtWork) socket.setTimeout(patience.unreadMilliseconds)
    else socket.destroy()
  })
  return server
}
