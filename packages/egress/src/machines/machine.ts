import { EventEmitter, once } from 'node:events'
import { chmod } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import type { EgressRoute } from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import type { ControlMessage } from '@berth/contract/egress/machine-protocol.ts'
import { MachineConnectors } from '../connectors/machine-connectors.ts'
import { EgressFailure } from '../egress-failure.ts'
import type { EgressLogger } from '../egress-logger.ts'
import type { Guard } from '../guard/guard.ts'
import type { NameResolver } from '../names/name-resolver.ts'
import { AnsweredNames } from './answered-names.ts'
import { type Decision, MachineConnection } from './machine-connection.ts'
import { MachineQuota } from './machine-quota.ts'
import { type ConnectionRequest, parseGreeting } from './protocol/greeting.ts'
import { takeFirstLine, writeLine } from './protocol/lines.ts'
import { existsSocket, removeStaleSocket } from './socket-files.ts'
import { ControlStream } from './streams/control-stream.ts'
import { serveLookups } from './streams/lookup-stream.ts'

const settingsWaitMilliseconds = 1_000
const maxRecordedDestinations = 100
/** A paused socket holds one chunk and stops reading. */
const highWaterMark = 1

interface MachineOptions {
  readonly settings: EgressSettings
  readonly guard: Guard
  readonly names: Pick<NameResolver, 'lookup' | 'addresses' | 'close'>
  readonly logger: EgressLogger
}

/** Serves one machine on a unix socket of its own: connections, lookups and control messages. */
export class Machine {
  readonly #options: MachineOptions
  readonly #connectors: MachineConnectors
  readonly #quota = new MachineQuota()
  readonly #answered = new AnsweredNames()
  readonly #sockets = new Set<Socket>()
  readonly #connections = new Map<number, MachineConnection>()
  /** The first destinations that the machine requested. Each is also emitted as an event. */
  readonly #destinations = new Set<string>()
  readonly #requests = new EventEmitter()
  #control: ControlStream | undefined
  #server: Server | undefined
  #socketPath: string | undefined
  #maxConnections = 1

  constructor(options: MachineOptions) {
    this.#options = options
    this.#connectors = new MachineConnectors(options.settings, options)
  }

  /** Closes connections that the new settings route differently: at once, or once they are idle when `isGentle`. */
  setSettings(settings: EgressSettings, isGentle: boolean): void {
    this.#connectors.set(settings)
    for (const connection of this.#connections.values()) connection.settingsChanged(isGentle)
  }

  /** Connections beyond the limit are closed immediately. */
  setMaxConnections(count: number): void {
    this.#maxConnections = count
    if (this.#server) this.#server.maxConnections = count
  }

  /** Waits a limited time until something in the machine connects, or has connected, to the destination. */
  async waitForConnectionTo(destination: string): Promise<void> {
    if (this.#destinations.has(destination)) return
    const limit = AbortSignal.timeout(settingsWaitMilliseconds)
    await once(this.#requests, destination, { signal: limit }).catch(() => {})
  }

  /** Listens on the socket of the route. Open connections survive when the socket moves. */
  async listen(route: EgressRoute): Promise<void> {
    const isThere = route.socket_path === this.#socketPath && (await existsSocket(route.socket_path))
    if (!isThere) await this.#open(route.socket_path)
    await chmod(route.socket_path, route.socket_mode)
  }

  /** Closes all connections. When it resolves, the socket file is gone. */
  async close(): Promise<void> {
    this.#stopListening()
    this.#options.names.close()
    const closed = [...this.#sockets].map((socket) => once(socket, 'close'))
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all(closed)
  }

  async #open(socketPath: string): Promise<void> {
    this.#stopListening()
    await removeStaleSocket(socketPath)
    const server = createServer({ allowHalfOpen: true, highWaterMark }, (socket) => this.#accept(socket))
    server.maxConnections = this.#maxConnections
    server.listen(socketPath)
    await once(server, 'listening')
    server.on('error', (error) => this.#options.logger.error({ err: error }, 'could not accept a connection'))
    this.#server = server
    this.#socketPath = socketPath
  }

  /** Accepted connections stay open. */
  #stopListening(): void {
    this.#server?.close()
    this.#server = undefined
    this.#socketPath = undefined
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket)
    // An 'error' event without a listener would end the process. 'close' follows and is handled below.
    socket.on('error', () => {})
    socket.once('close', () => this.#sockets.delete(socket))
    this.#serve(socket)
      // Stream errors are caused by the machine: it disconnected, or sent an invalid line.
      .catch((error: Error) => this.#options.logger.debug({ reason: error.message }, 'a stream of a machine failed'))
      .finally(() => socket.destroy())
  }

  async #serve(socket: Socket): Promise<void> {
    const line = await takeFirstLine(socket)
    const greeting = line === undefined ? undefined : parseGreeting(line)
    await this.#quota.awaitSlice()
    if (greeting?.type === 'control') return this.#serveControl(socket)
    if (greeting?.type === 'lookup') {
      const { guard, names } = this.#options
      const [connectors, answered, quota] = [this.#connectors, this.#answered, this.#quota]
      return serveLookups(socket, { guard, names, connectors, answered, quota })
    }
    if (greeting && this.#control && !this.#connections.has(greeting.id)) return this.#serveConnection(socket, greeting)
    if (line !== undefined) writeLine(socket, { type: 'failed', kind: 'bad-request' })
    socket.destroySoon()
  }

  async #serveControl(socket: Socket): Promise<void> {
    this.#control?.end()
    const control = new ControlStream(socket)
    this.#control = control
    try {
      await control.serve(({ id, how }) => this.#connections.get(id)?.handleClose(how))
    } finally {
      if (this.#control === control) this.#control = undefined
      if (!this.#control) for (const connection of this.#connections.values()) connection.break()
    }
  }

  async #serveConnection(socket: Socket, request: ConnectionRequest): Promise<void> {
    const { id } = request
    const connection = new MachineConnection(socket, {
      id,
      decide: () => this.#decide(request),
      sendControl: (message: ControlMessage) => this.#control?.send(message),
      quota: this.#quota,
      logger: this.#options.logger,
    })
    this.#connections.set(id, connection)
    try {
      await connection.serve()
    } finally {
      this.#connections.delete(id)
    }
  }

  /**
   * Chooses how a connection leaves. A connection to an address that the machine was given for a name counts as one to
   * that name, so settings for names apply whenever they were made. If the names of one address require different
   * routes, the connection is refused.
   */
  #decide({ host, port, isFullyQualified }: ConnectionRequest): Decision {
    const names = host.kind === 'address' ? this.#answered.namesOf(host.address) : []
    const hosts = names.length === 0 ? [host] : names.map((name) => ({ kind: 'name', name }) as const)
    for (const named of hosts) this.#recordDestination(`${named.kind === 'name' ? named.name : named.address}:${port}`)
    const decisions = hosts.map((named): Decision => {
      const chosen = host.kind === 'address' && named.kind === 'name' ? { address: host.address } : {}
      const destination = { host: named, port, isFullyQualified, ...chosen }
      return { destination, connector: this.#connectors.connectorFor(destination) }
    })
    const last = decisions.at(-1) as Decision
    if (decisions.some(({ connector }) => connector.key !== last.connector.key))
      throw new EgressFailure('refused', 'The names of this address have different routes.')
    return last
  }

  #recordDestination(destination: string): void {
    if (this.#destinations.size < maxRecordedDestinations) this.#destinations.add(destination)
    this.#requests.emit(destination)
  }
}
