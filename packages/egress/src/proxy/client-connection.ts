import { Agent, type AgentOptions, type RequestOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { HostAndPort } from '@berth/contract/egress/host.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { type EgressFailure, toEgressFailure } from '../egress-failure.ts'
import { keepAliveAfterMilliseconds } from './connect-to-first.ts'
import { splice } from './splice.ts'
import type { Way, Ways } from './way.ts'

/** How long an HTTP exchange may be silent in both directions, waiting for a slow answer or between its parts. */
export const silenceLimitMilliseconds = 15 * 60_000

/** After so long without a byte, a tunnel that is to end is taken for unused. */
const quietMilliseconds = 3_000

/** A request that goes on to a server, with what the agent needs to open a connection for it. */
export interface ForwardOptions extends RequestOptions {
  readonly destination: HostAndPort
  readonly way: Way
}

interface ClientConnectionOptions {
  readonly ways: Ways
  /** Told of each request, when it has been decided by which way it leaves. */
  readonly onRequest: (destination: HostAndPort) => void
  readonly logger: Logger
}

/** A connection that leaves, from when it is asked for until it ends. */
interface Use {
  readonly destination: HostAndPort
  readonly wayKey: string
}

/**
 * A connection that a program in the machine opened to egress. Connections to servers belong to it alone: they are
 * kept for its next requests, end with it, and end it, so that a program sees the same ends as without a proxy.
 */
export class ClientConnection {
  readonly socket: Socket
  /** Holds the connections to servers for the requests of this client. */
  readonly agent: Agent
  readonly #gone = new AbortController()
  readonly #ways: Ways
  readonly #onRequest: (destination: HostAndPort) => void
  readonly #logger: Logger
  readonly #uses = new Set<Use>()
  #opening = 0
  #pinned: { readonly destination: HostAndPort; readonly way: Way } | undefined
  #prepared: Socket | undefined
  #openExchanges = 0
  #isTunnel = false
  #isRetired = false

  constructor(socket: Socket, { ways, onRequest, logger }: ClientConnectionOptions) {
    this.socket = socket
    this.#ways = ways
    this.#onRequest = onRequest
    this.#logger = logger
    this.agent = new ServerConnections(this, {
      keepAlive: true,
      keepAliveMsecs: keepAliveAfterMilliseconds,
      timeout: silenceLimitMilliseconds,
    })
    // Without a listener an error would end the process; 'close' follows, and that is where ends are handled.
    socket.on('error', () => {})
    socket.once('close', () => {
      this.#gone.abort()
      this.#prepared?.destroy()
      this.agent.destroy()
    })
  }

  /** Aborted when the client has gone. */
  get gone(): AbortSignal {
    return this.#gone.signal
  }

  /** The one destination of all requests, where the client has named it before the first. */
  get pinnedDestination(): HostAndPort | undefined {
    return this.#pinned?.destination
  }

  /** Counts a request in until its answer is complete. */
  beginExchange(): void {
    this.#openExchanges += 1
  }

  endExchange(): void {
    this.#openExchanges -= 1
    if (this.#isRetired && this.isIdle) this.socket.destroySoon()
  }

  /** Whether no answer is awaited. */
  get isIdle(): boolean {
    return this.#openExchanges === 0
  }

  /** By which way a request leaves that is sent now. */
  wayTo(destination: HostAndPort): Way {
    const way = this.#pinned?.way ?? this.#ways.wayTo(destination)
    this.#onRequest(destination)
    return way
  }

  /**
   * Takes a destination for all requests to come, and makes sure that its proxy, if it has one, can be connected to;
   * that connection is for the first request.
   */
  async pin(destination: HostAndPort): Promise<void> {
    const way = this.#ways.wayTo(destination)
    this.#pinned = { destination, way }
    this.#uses.add({ destination, wayKey: way.key })
    if (!way.hop) return
    const prepared = await this.#open(destination, way.key, (signal) => way.hop?.connect(destination, signal))
    prepared.once('close', () => this.serverHasEnded())
    this.#prepared = prepared
  }

  /** Opens a connection to the destination; gives up when the client has gone, or at the signal. */
  async connect(destination: HostAndPort, way: Way, signal?: AbortSignal): Promise<Socket> {
    return this.#open(destination, way.key, (either) => way.connect(destination, either), signal)
  }

  /** Opens a connection for requests in plain HTTP, to their server or to a proxy that takes them. */
  async connectForHttp({ destination, way }: ForwardOptions): Promise<Socket> {
    const prepared = this.#prepared
    this.#prepared = undefined
    if (prepared?.readable && prepared.writable) return prepared
    return this.#open(destination, way.key, (signal) => (way.hop ?? way).connect(destination, signal))
  }

  async #open(
    destination: HostAndPort,
    wayKey: string,
    open: (signal: AbortSignal) => Promise<Socket> | undefined,
    signal?: AbortSignal,
  ): Promise<Socket> {
    const abandoned = signal ? AbortSignal.any([this.gone, signal]) : this.gone
    const use: Use = { destination, wayKey }
    this.#uses.add(use)
    this.#opening += 1
    try {
      const socket = (await open(abandoned)) as Socket
      socket.once('close', () => this.#uses.delete(use))
      if (!abandoned.aborted) return socket
      socket.destroy()
      throw abandoned.reason
    } catch (error) {
      this.#uses.delete(use)
      throw error
    } finally {
      this.#opening -= 1
    }
  }

  /** From now on only bytes are copied, to and from the server. */
  becomeTunnel(server: Socket): void {
    this.#isTunnel = true
    splice(this.socket, server)
    if (this.#isRetired) this.retire()
  }

  /** Whether something of it leaves by another way than it would now. */
  get isOutdated(): boolean {
    return [...this.#uses].some(({ destination, wayKey }) => this.#ways.wayTo(destination).key !== wayKey)
  }

  /** Ends when nothing is under way any more, so that new requests come by a new connection. */
  retire(): void {
    this.#isRetired = true
    if (this.#isTunnel) this.socket.setTimeout(quietMilliseconds, () => this.socket.destroy())
    else if (this.isIdle && this.#opening === 0) this.socket.destroySoon()
  }

  /** What an error is to the client. One that nobody expected is a bug, and goes to the log. */
  failureOf(error: unknown): EgressFailure {
    const failure = toEgressFailure(error)
    if (failure.kind === 'internal-error' && !this.#gone.signal.aborted)
      this.#logger.error({ err: error }, 'could not serve a request')
    return failure
  }

  /** A server has ended a connection that the client may count on. An idle client has to know before its next request. */
  serverHasEnded(): void {
    if (this.isIdle) this.socket.destroySoon()
  }
}

class ServerConnections extends Agent {
  readonly #client: ClientConnection

  constructor(client: ClientConnection, options: AgentOptions) {
    super(options)
    this.#client = client
  }

  /** Connections that leave by different ways are not taken for each other. */
  override getName(options: RequestOptions): string {
    const { way } = options as ForwardOptions
    return `${super.getName(options)} ${way.hop ? way.key : ''} ${way.hop?.authorization ?? ''}`
  }

  override createConnection(
    options: RequestOptions,
    callback: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    this.#client.connectForHttp(options as ForwardOptions).then(
      (socket) => {
        socket.once('close', () => this.#client.serverHasEnded())
        callback(null, socket)
      },
      (error: Error) => (callback as (error: Error) => void)(error),
    )
  }
}
