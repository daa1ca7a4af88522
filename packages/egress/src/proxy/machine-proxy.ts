import { once } from 'node:events'
import { chmod } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { EgressRoute } from '@berth/contract/egress/egress-endpoints.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { EgressFailure } from '../egress-failure.ts'
import { existsSocket, removeStaleSocket } from '../socket-files.ts'
import { ClientConnection } from './client-connection.ts'
import type { Connector } from './connector.ts'
import { endWithFailure } from './failure-reply.ts'
import { forwardRequest, maxHeaderBytes } from './forward.ts'
import { forwardUpgrade, isUpgrade } from './forward-upgrade.ts'
import { openTunnel } from './tunnel.ts'

// Longer than programs keep an idle connection, so that it is they who close it and never in the middle of a request.
const idleLimitMilliseconds = 6 * 60_000
// A browser opens a few dozen to its proxy. Without a limit, one machine could use up the files of this process.
const maxConnections = 1_024

/** The HTTP proxy of one machine, on a unix socket that tells whose it is. */
export class MachineProxy {
  readonly #connector: Connector
  readonly #logger: Logger
  readonly #clients = new Map<Socket, ClientConnection>()
  #server: Server | undefined
  #socketPath: string | undefined

  constructor({ connector, logger }: { connector: Connector; logger: Logger }) {
    this.#connector = connector
    this.#logger = logger
  }

  /** Listens as the route says. Connections that are open stay, also when the socket moves. */
  async listen(route: EgressRoute): Promise<void> {
    const isThere = route.socket_path === this.#socketPath && (await existsSocket(route.socket_path))
    if (!isThere) await this.#open(route.socket_path)
    await chmod(route.socket_path, route.socket_mode)
  }

  /** Cuts all connections; with its end, the socket is gone from the file system. */
  async close(): Promise<void> {
    const closed = this.#stopListening()
    for (const socket of this.#clients.keys()) socket.destroy()
    await closed
  }

  async #open(socketPath: string): Promise<void> {
    // First the old one: with its end, it removes whatever is at its path.
    void this.#stopListening()
    await removeStaleSocket(socketPath)
    const server = this.#createServer()
    server.listen(socketPath)
    await once(server, 'listening')
    // Where no more files can be opened, accepting fails; that passes.
    server.on('error', (error) => this.#logger.warn({ err: error }, 'could not accept a connection'))
    this.#server = server
    this.#socketPath = socketPath
  }

  async #stopListening(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    this.#socketPath = undefined
    if (!server) return
    const closed = once(server, 'close')
    server.close()
    await closed
  }

  #createServer(): Server {
    const server = createServer({
      maxHeaderSize: maxHeaderBytes,
      requireHostHeader: false, // The target names the host.
      headersTimeout: idleLimitMilliseconds,
      keepAliveTimeout: idleLimitMilliseconds,
      requestTimeout: 0, // An upload may take hours.
      shouldUpgradeCallback: isUpgrade,
    })
    server.maxHeadersCount = 0 // Node would drop what is above its limit, and say nothing.
    server.maxConnections = maxConnections
    server.on('connection', (socket: Socket) => this.#add(socket))
    server.on('request', (request, response) =>
      this.#serve(request, (client) => forwardRequest(client, request, response)),
    )
    server.on('checkContinue', (request, response) =>
      this.#serve(request, (client) => forwardRequest(client, request, response)),
    )
    server.on('upgrade', (request, _socket, head) =>
      this.#serve(request, (client) => forwardUpgrade(client, request, head)),
    )
    server.on('connect', (request, _socket, head) =>
      this.#serve(request, (client) => openTunnel(client, request, head)),
    )
    server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => this.#answerNonsense(error, socket))
    return server
  }

  #add(socket: Socket): void {
    this.#clients.set(socket, new ClientConnection(socket, { connector: this.#connector, logger: this.#logger }))
    socket.once('close', () => this.#clients.delete(socket))
  }

  /** A bug that one request meets ends that request's connection, not the connections of all machines. */
  #serve({ socket }: IncomingMessage, serve: (client: ClientConnection) => void): void {
    const client = this.#clients.get(socket)
    if (!client) return
    try {
      serve(client)
    } catch (error) {
      this.#logger.error({ err: error }, 'could not serve a request')
      socket.destroy()
    }
  }

  #answerNonsense({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
    // In the middle of an answer, a second one would be read as part of it.
    if (!code.startsWith('HPE_') || !this.#clients.get(socket)?.isIdle) socket.destroy()
    else if (code === 'HPE_HEADER_OVERFLOW') endWithFailure(socket, new EgressFailure('headers-too-large'))
    else endWithFailure(socket, new EgressFailure('bad-request', 'This is not an HTTP request.'))
  }
}
