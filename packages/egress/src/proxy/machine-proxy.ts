import { EventEmitter, once } from 'node:events'
import { chmod } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { EgressRoute } from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { EgressFailure } from '../egress-failure.ts'
import { existsSocket, removeStaleSocket } from '../socket-files.ts'
import { ClientConnection } from './client-connection.ts'
import { endWithFailure } from './failure-reply.ts'
import { forwardRequest, maxHeaderBytes } from './forward.ts'
import { forwardUpgrade, isUpgrade } from './forward-upgrade.ts'
import type { MachineWays } from './machine-ways.ts'
import { destinationText } from './proxy-server.ts'
import { takeDestination } from './socks-greeting.ts'
import { openTunnel } from './tunnel.ts'

// Longer than programs keep an idle connection, so that it is they who close it and never in the middle of a request.
const idleLimitMilliseconds = 6 * 60_000
// A browser opens a few dozen to its proxy. Without a limit, one machine could use up the files of this process.
const maxConnections = 1_024
const settingsWaitMilliseconds = 1_000
const maxNotedDestinations = 100
const socksVersion = 5

/**
 * The proxy of one machine, on a unix socket that tells whose it is. Programs speak HTTP to it; for plain HTTP Chromium
 * greets with SOCKS5 first, because only then it can be told that there is no connection to a proxy.
 */
export class MachineProxy {
  readonly #ways: MachineWays
  readonly #logger: Logger
  readonly #clients = new Map<Socket, ClientConnection>()
  /** The first destinations of the machine; each is also an event when something is asked of it. */
  readonly #destinations = new Set<string>()
  readonly #requests = new EventEmitter()
  #server: Server | undefined
  #socketPath: string | undefined

  constructor({ ways, logger }: { ways: MachineWays; logger: Logger }) {
    this.#ways = ways
    this.#logger = logger
  }

  /** Connections that would now leave by another way are cut, or, gently, end when they are not used any more. */
  setSettings(settings: EgressSettings, isGentle: boolean): void {
    this.#ways.set(settings)
    for (const client of this.#clients.values()) {
      if (!client.isOutdated) continue
      if (isGentle) client.retire()
      else client.socket.destroy()
    }
  }

  /** Waits, a moment long, until something in the machine asks, or has asked, the destination for something. */
  async untilAsked(destination: string): Promise<void> {
    if (this.#destinations.has(destination)) return
    const limit = AbortSignal.timeout(settingsWaitMilliseconds)
    await once(this.#requests, destination, { signal: limit }).catch(() => {})
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
    this.#acceptBothKinds(server)
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

  /** Puts what tells the kinds apart before Node's own handler of connections. */
  #acceptBothKinds(server: Server): void {
    const [serveHttp] = server.listeners('connection')
    server.removeAllListeners('connection')
    server.on('connection', (socket: Socket) => {
      const client = this.#add(socket)
      const serve = () => {
        socket.setTimeout(0, end)
        if (!socket.destroyed) serveHttp?.call(server, socket)
      }
      const end = () => socket.destroy()
      socket.setTimeout(idleLimitMilliseconds, end)
      socket.once('readable', () => {
        const first: Buffer | null = socket.read(1)
        if (first) socket.unshift(first)
        if (first?.[0] !== socksVersion) serve()
        else takeDestination(client).then((isTaken) => isTaken && serve(), end)
      })
    })
  }

  #add(socket: Socket): ClientConnection {
    const client = new ClientConnection(socket, {
      ways: this.#ways,
      onRequest: (destination) => this.#noteRequest(destinationText(destination)),
      logger: this.#logger,
    })
    this.#clients.set(socket, client)
    socket.once('close', () => this.#clients.delete(socket))
    return client
  }

  #noteRequest(destination: string): void {
    if (this.#destinations.size < maxNotedDestinations) this.#destinations.add(destination)
    this.#requests.emit(destination)
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
