import { Agent, type AgentOptions, type RequestOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { HostAndPort } from '@berth/contract/egress/host.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { type EgressFailure, toEgressFailure } from '../egress-failure.ts'
import { keepAliveAfterMilliseconds } from './connect-to-first.ts'
import type { Connector } from './connector.ts'

/** How long an HTTP exchange may be silent in both directions, waiting for a slow answer or between its parts. */
const silenceLimitMilliseconds = 15 * 60_000

/** A request that goes on to a server, with what the agent needs to open a connection for it. */
export interface ForwardOptions extends RequestOptions {
  readonly destination: HostAndPort
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
  readonly #connector: Connector
  readonly #logger: Logger
  #openExchanges = 0

  constructor(socket: Socket, { connector, logger }: { connector: Connector; logger: Logger }) {
    this.socket = socket
    this.#connector = connector
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
      this.agent.destroy()
    })
  }

  /** Counts a request in until its answer is complete. */
  beginExchange(): void {
    this.#openExchanges += 1
  }

  endExchange(): void {
    this.#openExchanges -= 1
  }

  /** Whether no answer is awaited. */
  get isIdle(): boolean {
    return this.#openExchanges === 0
  }

  /** Opens a connection for this client; gives up when the client has gone, or at the signal. */
  async connect(destination: HostAndPort, signal?: AbortSignal): Promise<Socket> {
    const gone = this.#gone.signal
    const abandoned = signal ? AbortSignal.any([gone, signal]) : gone
    const socket = await this.#connector.connect(destination, abandoned)
    if (!abandoned.aborted) return socket
    socket.destroy()
    throw abandoned.reason
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

  override createConnection(
    options: RequestOptions,
    callback: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    const { destination } = options as ForwardOptions
    this.#client.connect(destination).then(
      (socket) => {
        socket.once('close', () => this.#client.serverHasEnded())
        callback(null, socket)
      },
      (error: Error) => (callback as (error: Error) => void)(error),
    )
  }
}
