import { createServer, type Socket } from 'node:net'
import { inheritedDescriptors } from '@berth/contract/agent/machine/machine-network.ts'
import type { ConnectionFailure } from '@berth/contract/egress/machine-protocol.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { connectionFailures } from './connection-failures.ts'
import { ConnectionRefusal, type EgressConnection, EgressUplink } from './egress-uplink.ts'
import { FrameSocket } from './frame-socket.ts'
import type { NameServer } from './name-server.ts'
import { NameTable } from './name-table.ts'
import {
  datagramFrame,
  type Endpoint,
  type Packet,
  parseFrame,
  plainAddress,
  repeatedFrame,
  resetFrame,
  tcp,
  unreachableFrame,
} from './packet.ts'
import { splice } from './splice.ts'

const dnsPort = 53
/** More than Chromium opens at a time. The sender repeats a SYN that exceeds the limit. */
const maxOpenings = 1_024
const maxConnections = 4_096
/** How long the kernel repeats an unanswered SYN. */
const silenceMilliseconds = 130_000
/** The handshake takes place within the machine: a program that takes longer has given up. */
const acceptLimitMilliseconds = 5_000

/** A DNS query of the type HTTPS for the root (RFC 1035, RFC 9460). */
const serviceQuery = Buffer.from([0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 65, 0, 1])

/** `asked`: egress has not answered yet. `silent`: the destination never answered. Otherwise the connection to join. */
type Opening = 'asked' | 'silent' | { readonly join: (program: Socket) => void; readonly drop: () => void }

/**
 * Captures connections that leave the machine. Every packet that opens a connection is held until egress has opened the
 * same connection. The packet is then admitted, and the listener, which accepts all destination addresses, completes
 * the handshake; otherwise the program gets the reply that the destination gave. DNS queries are answered here,
 * whatever server they are for.
 */
export class Capture {
  readonly #frames: FrameSocket
  readonly #egress: EgressUplink
  readonly #names = new NameTable()
  readonly #logger: Logger
  readonly #openings = new Map<string, Opening>()
  readonly #onLookup: (name: string) => void
  #connections = 0
  #nameServer: Promise<NameServer> | undefined

  /** `onLookup` is called with host names that programs look up. */
  constructor(egressSocket: string, logger: Logger, onLookup: (name: string) => void) {
    this.#frames = new FrameSocket(inheritedDescriptors.frames, logger)
    this.#egress = new EgressUplink(egressSocket)
    this.#logger = logger
    this.#onLookup = onLookup
  }

  start(): void {
    for (const fd of [inheritedDescriptors.captureIpv4, inheritedDescriptors.captureIpv6]) {
      createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (program) => this.#accept(program))
        .on('error', (error) => this.#logger.error({ err: error }, 'a captured connection could not be accepted'))
        .listen({ fd })
    }
    this.#frames.listen((frame) => {
      const packet = parseFrame(frame)
      if (packet?.protocol === tcp) this.#open(packet)
      else if (packet?.destination.port === dnsPort) void this.#answerDatagram(packet)
    })
  }

  /** Answers a query that egress is not asked for, as a warm-up: the first one takes several times as long. */
  async rehearse(): Promise<void> {
    await (await this.#serverOfNames()).answerDatagram(serviceQuery)
  }

  #open(transient: Packet): void {
    const key = keyOf(transient.source, transient.destination)
    if (this.#openings.has(key) || this.#openings.size >= maxOpenings || this.#connections >= maxConnections) return
    const packet = { ...transient, bytes: Buffer.from(transient.bytes), payload: Buffer.from(transient.payload) }
    this.#openings.set(key, 'asked')
    if (packet.destination.port === dnsPort) this.#letIn(key, packet, (program) => void this.#serveNames(program))
    else void this.#connect(key, packet)
  }

  async #connect(key: string, packet: Packet): Promise<void> {
    const { address, port } = packet.destination
    const name = this.#names.nameOf(address)
    if (name === undefined && NameTable.isOfPool(address)) return this.#refuse(key, packet, 'unreachable')
    const release = name === undefined ? () => {} : this.#names.hold(name)
    this.#connections += 1
    let connection: EgressConnection
    try {
      connection = await this.#egress.connect(name ?? address, port)
    } catch (error) {
      this.#connections -= 1
      release()
      if (!(error instanceof ConnectionRefusal)) throw error
      if (error.kind === 'refused') {
        connectionFailures.note(name ?? address, port, { code: 'destination_blocked', status: 403 })
      }
      return this.#refuse(key, packet, error.kind)
    }
    connection.socket.once('close', () => {
      this.#connections -= 1
      release()
    })
    this.#letIn(
      key,
      packet,
      (program) => splice(program, connection),
      () => connection.socket.destroy(),
    )
  }

  #letIn(key: string, packet: Packet, join: (program: Socket) => void, drop = () => {}): void {
    const timer = setTimeout(() => {
      this.#openings.delete(key)
      drop()
    }, acceptLimitMilliseconds)
    const joinInTime = (program: Socket) => {
      clearTimeout(timer)
      join(program)
    }
    this.#openings.set(key, { join: joinInTime, drop })
    this.#frames.send(repeatedFrame(packet))
  }

  #refuse(key: string, packet: Packet, kind: ConnectionFailure): void {
    this.#openings.delete(key)
    if (kind === 'connection-refused' || kind === 'proxy-failed') this.#frames.send(resetFrame(packet))
    else if (kind === 'timeout') {
      // The program's kernel gives up after enough retransmissions.
      this.#openings.set(key, 'silent')
      setTimeout(() => this.#openings.delete(key), silenceMilliseconds).unref()
    } else if (kind !== 'too-many' && kind !== 'internal-error') this.#frames.send(unreachableFrame(packet))
    // Otherwise the retransmission may find more room, or another egress.
  }

  #accept(program: Socket): void {
    const { remoteAddress = '', remotePort = 0, localAddress = '', localPort = 0 } = program
    const key = keyOf({ address: remoteAddress, port: remotePort }, { address: localAddress, port: localPort })
    const opening = this.#openings.get(key)
    if (typeof opening !== 'object') return void program.resetAndDestroy()
    this.#openings.delete(key)
    opening.join(program)
  }

  async #answerDatagram(transient: Packet): Promise<void> {
    const question = { ...transient, bytes: Buffer.from(transient.bytes), payload: Buffer.from(transient.payload) }
    const answer = await (await this.#serverOfNames()).answerDatagram(question.payload)
    if (answer) this.#frames.send(datagramFrame(question, answer))
  }

  async #serveNames(program: Socket): Promise<void> {
    program.on('error', () => {}) // 'close' follows.
    ;(await this.#serverOfNames()).serve(program)
  }

  /** Loaded on demand, so that it does not delay the launch of Chromium. */
  #serverOfNames(): Promise<NameServer> {
    this.#nameServer ??= import('./name-server.ts').then(
      ({ NameServer }) => new NameServer({ egress: this.#egress, names: this.#names, onLookup: this.#onLookup }),
    )
    return this.#nameServer
  }
}

function keyOf(source: Endpoint, destination: Endpoint): string {
  return [plainAddress(source.address), source.port, plainAddress(destination.address), destination.port].join(' ')
}
