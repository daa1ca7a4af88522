import type { Socket } from 'node:net'
import { hostText, parseAddress } from '@berth/contract/egress/host.ts'
import type { ConnectionClosed, ConnectionOpened, ControlMessage } from '@berth/contract/egress/machine-protocol.ts'
import type { Connector, Destination } from '../connectors/connector.ts'
import { TunnelRefused } from '../connectors/http-tunnel.ts'
import { EgressFailure, toEgressFailure } from '../egress-failure.ts'
import type { EgressLogger } from '../egress-logger.ts'
import type { MachineQuota } from './machine-quota.ts'
import { createChallengeFilter } from './protocol/challenge.ts'
import { beginsRequest, failureAnswer } from './protocol/failure-answer.ts'
import { writeLine } from './protocol/lines.ts'
import { RequestRefused, RequestRewriter } from './protocol/request-rewriter.ts'
import { Splice, type SpliceOptions } from './streams/splice.ts'

const firstBytesLimitMilliseconds = 10_000
/** How long a machine may take to close a connection after egress announced its end. */
const endLimitMilliseconds = 2_000

/** Where and how a connection is opened. */
export interface Decision {
  readonly destination: Destination
  readonly connector: Connector
}

export interface ConnectionOptions {
  readonly id: number
  /** Evaluates the current settings on each call. Throws an EgressFailure when they determine no route. */
  readonly decide: () => Decision
  readonly sendControl: (message: ControlMessage) => void
  readonly quota: MachineQuota
  readonly logger: EgressLogger
}

/** One connection of a machine to one destination. It is opened and then carries bytes, or it fails. */
export class MachineConnection {
  readonly #options: ConnectionOptions
  readonly #socket: Socket
  /** Aborted when the machine gives up or may no longer have the connection. */
  readonly #gone = new AbortController()
  #attempt = new AbortController()
  #decision: Decision | undefined
  #splice: Splice | undefined
  #isOpening = true
  #isRetired = false

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket
    this.#options = options
  }

  /** Serves the connection until it ends. Never rejects: failures stay within this connection. */
  async serve(): Promise<void> {
    try {
      await this.#serve()
    } catch (error) {
      if (!this.#gone.signal.aborted) this.#options.logger.error({ err: error }, 'could not serve a connection')
    } finally {
      this.break()
    }
  }

  /** Handles the machine's message that its direction ends. */
  handleClose(how: ConnectionClosed['how']): void {
    if (this.#splice) this.#splice.handleClose(how)
    else if (how === 'reset') this.break()
  }

  /**
   * Closes the connection if the new settings route it differently. An attempt in progress is restarted. When
   * `isGentle`, the connection closes once it is idle.
   */
  settingsChanged(isGentle: boolean): void {
    if (!this.#decision || !this.#isOutdated(this.#decision)) return
    this.#isRetired = isGentle
    if (this.#isOpening && isGentle) return
    if (this.#isOpening) this.#attempt.abort()
    else if (this.#splice && isGentle) this.#splice.retire()
    // Egress answers this connection itself by the old settings, so the client has to reconnect.
    else this.break()
  }

  break(): void {
    this.#gone.abort()
    this.#splice?.break()
    this.#socket.destroy()
  }

  async #serve(): Promise<void> {
    const abort = () => this.#gone.abort()
    // A socket reports its end only to a reader.
    const notice = () => void (this.#socket.readableLength === 0 && this.#socket.read())
    this.#socket.once('close', abort).once('end', abort).on('readable', notice)
    let far: Socket
    try {
      far = await this.#open()
    } catch (error) {
      this.#gone.signal.throwIfAborted()
      return this.#fail(this.#failureOf(error))
    } finally {
      this.#isOpening = false
      this.#socket.off('end', abort).off('readable', notice)
    }
    const address = this.#decision?.connector.isDirect ? parseAddress(far.remoteAddress ?? '') : undefined
    this.#sendOpened(address === undefined ? {} : { address, port: far.remotePort ?? 0 })
    await this.#join(far)
  }

  /** Opens a connection to the destination. Starts again when the settings change meanwhile. */
  async #open(): Promise<Socket> {
    for (;;) {
      this.#attempt = new AbortController()
      this.#decision = this.#options.decide()
      const { destination, connector } = this.#decision
      const signal = AbortSignal.any([this.#gone.signal, this.#attempt.signal])
      try {
        const far = await connector.connect(destination, signal)
        far.on('error', () => {})
        if (!signal.aborted) return far
        far.destroy()
      } catch (error) {
        if (!signal.aborted) throw error
      }
      this.#gone.signal.throwIfAborted()
    }
  }

  /** Copies bytes until the connection ends. Returns the error if the traffic could not be parsed. */
  async #join(far: Socket, filters: Pick<SpliceOptions, 'outgoing' | 'incoming'> = {}): Promise<unknown> {
    const { quota, id, sendControl } = this.#options
    this.#splice = new Splice({
      machine: this.#socket,
      far,
      quota,
      announceClose: (how) => sendControl({ type: 'closed', id, how }),
      ...filters,
    })
    if (this.#isRetired) this.#splice.retire()
    if (this.#gone.signal.aborted) this.#splice.break()
    return this.#splice.ended
  }

  async #fail(failure: EgressFailure): Promise<void> {
    if (failure.isAnswered && this.#decision) return this.#answerInPlace(failure, this.#decision)
    writeLine(this.#socket, { type: 'failed', kind: failure.connectionFailure })
    await this.#end()
  }

  /** Answers plain HTTP requests in place of the destination, and resets any other connection. */
  async #answerInPlace(failure: EgressFailure, decision: Decision): Promise<void> {
    this.#sendOpened({})
    const isRequest = await this.#beginsRequest()
    if (isRequest && failure instanceof TunnelRefused) return this.#passRequests(failure, decision)
    this.#sendProxyFailure(failure)
    if (isRequest) return this.#answer(failureAnswer(failure))
    this.#options.sendControl({ type: 'closed', id: this.#options.id, how: 'reset' })
  }

  /** Forwards complete requests to a proxy that opens no tunnel for them. */
  async #passRequests(refusal: EgressFailure, { destination, connector: { requests } }: Decision): Promise<void> {
    if (!requests) return
    let proxy: Socket
    try {
      proxy = await requests.connect(destination, this.#gone.signal)
      proxy.on('error', () => {})
    } catch (error) {
      this.#gone.signal.throwIfAborted()
      this.#sendProxyFailure(refusal)
      return this.#answer(failureAnswer(this.#failureOf(error)))
    }
    const rewriter = new RequestRewriter(destination, requests.authorization)
    const unreadable = await this.#join(proxy, {
      outgoing: (chunk) => rewriter.push(chunk),
      incoming: createChallengeFilter(),
    })
    if (unreadable instanceof RequestRefused) return this.#answer(unreadable.answer)
    if (!(unreadable instanceof EgressFailure)) return
    this.#sendProxyFailure(unreadable)
    return this.#answer(failureAnswer(unreadable))
  }

  async #answer(text: string): Promise<void> {
    this.#options.sendControl({ type: 'closed', id: this.#options.id, how: 'end' })
    this.#socket.write(text)
    await this.#end()
  }

  /**
   * Ends the direction towards the machine, and discards what still arrives: a socket closed with unread data resets
   * the connection.
   */
  async #end(): Promise<void> {
    const limit = AbortSignal.any([this.#gone.signal, AbortSignal.timeout(endLimitMilliseconds)])
    this.#socket.end()
    while (!limit.aborted && !this.#socket.readableEnded) {
      if (this.#socket.read() === null) await change(this.#socket, limit)
    }
  }

  /** Whether the first bytes of the machine start a plain HTTP request. They stay in the socket. */
  async #beginsRequest(): Promise<boolean> {
    const limit = AbortSignal.any([this.#gone.signal, AbortSignal.timeout(firstBytesLimitMilliseconds)])
    let bytes: Buffer = Buffer.alloc(0)
    while (!limit.aborted && !this.#socket.readableEnded) {
      const chunk: Buffer | null = this.#socket.read()
      if (chunk) {
        bytes = Buffer.concat([bytes, chunk])
        const isRequest = beginsRequest(bytes)
        if (isRequest === undefined) continue
        if (isRequest) this.#socket.unshift(bytes)
        return isRequest
      }
      await change(this.#socket, limit)
    }
    return false
  }

  #isOutdated({ connector }: Decision): boolean {
    try {
      return this.#options.decide().connector.key !== connector.key
    } catch {
      return true
    }
  }

  #failureOf(error: unknown): EgressFailure {
    const failure = toEgressFailure(error)
    const { logger } = this.#options
    const { destination } = this.#decision ?? {}
    if (failure.kind === 'internal-error') logger.error({ err: error }, 'could not open a connection')
    if (destination) {
      const host = hostText(destination.host)
      logger.debug({ host, port: destination.port, failure: failure.kind }, 'could not connect')
    }
    return failure
  }

  #sendOpened(where: Omit<ConnectionOpened, 'type'>): void {
    writeLine(this.#socket, { type: 'connected', ...where })
  }

  #sendProxyFailure({ code }: EgressFailure): void {
    const { host, port } = (this.#decision as Decision).destination
    this.#options.sendControl({
      type: 'proxy_failed',
      code,
      host: host.kind === 'name' ? host.name : host.address,
      port,
    })
  }
}

/** Resolves when the socket is readable or ended, or when the signal is aborted. */
function change(socket: Socket, signal: AbortSignal): Promise<void> {
  const events = ['readable', 'end', 'close']
  return new Promise((resolve) => {
    const settle = () => {
      for (const event of events) socket.off(event, settle)
      signal.removeEventListener('abort', settle)
      resolve()
    }
    for (const event of events) socket.on(event, settle)
    signal.addEventListener('abort', settle)
  })
}
