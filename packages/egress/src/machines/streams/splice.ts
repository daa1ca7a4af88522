import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { ConnectionClosed } from '@berth/contract/egress/machine-protocol.ts'
import { deferWriteFailure } from '@berth/runtime/stream/deferred-write-failure.ts'
import type { MachineQuota } from '../machine-quota.ts'
import { pump } from './pump.ts'

/** How long to wait for the message that says how the machine's direction ended. */
const closeMessageLimitMilliseconds = 5_000
const idleCheckMilliseconds = 250
/** After this many checks without traffic, a retired connection counts as idle. */
const maxIdleChecks = 4
const maxChecks = 240

/** How long the agent may take to read the remaining bytes before the socket is destroyed. */
const drainLimitMilliseconds = 2_000

export interface SpliceOptions {
  readonly machine: Socket
  readonly far: Socket
  readonly quota: MachineQuota
  /** Announces to the machine how the direction towards it ends. */
  readonly announceClose: (how: ConnectionClosed['how']) => void
  /** Replaces chunks towards the destination and towards the machine. */
  readonly outgoing?: ((chunk: Buffer) => Buffer) | undefined
  readonly incoming?: ((chunk: Buffer) => Buffer) | undefined
}

/**
 * Joins a connection of a machine to the connection with its destination. The directions end independently. An error on
 * one side resets the other. Done when both sockets are closed.
 */
export class Splice {
  readonly #options: SpliceOptions
  readonly #ended = Promise.withResolvers<unknown>()
  /** A proxy has answered before the destination does. */
  readonly #handshakeBytes: number
  readonly #pumps: readonly { stop(): void }[]
  #announcedClose: ConnectionClosed['how'] | undefined
  #hasMachineEnded = false
  #hasAnnouncedEnd = false
  #isBroken = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: SpliceOptions) {
    this.#options = options
    const { machine, far, quota, outgoing, incoming } = options
    this.#handshakeBytes = far.bytesRead
    deferWriteFailure(far)
    for (const socket of [machine, far]) socket.once('error', this.#broken).once('close', this.#sideClosed)
    const onFailure = (error: unknown) => this.#failed(error)
    this.#pumps = [
      pump({ from: machine, to: far, quota, transform: outgoing, onFailure, onEnd: () => this.#machineEnded() }),
      pump({ from: far, to: machine, quota, transform: incoming, onFailure, onEnd: () => this.#farEnded() }),
    ]
    // A socket that is closed already emits no more events.
    if (machine.destroyed || far.destroyed) this.break()
  }

  /**
   * Resolves when both sides are closed. Resolves with an error when the traffic could not be parsed: then only the far
   * side is closed, and the caller answers the machine. Never rejects.
   */
  get ended(): Promise<unknown> {
    return this.#ended.promise
  }

  /** Handles the machine's message that its direction ends. It may arrive before or after the end itself. */
  handleClose(how: ConnectionClosed['how']): void {
    this.#announcedClose ??= how
    if (how === 'reset') this.#options.machine.destroy()
    else if (this.#hasMachineEnded) this.#options.far.end()
  }

  /**
   * Closes both sides. Each side sees a reset unless its stream is complete. The machine first gets the bytes that are
   * queued for it, which may be a response that ends an upload.
   */
  break(): void {
    const { machine, far, announceClose } = this.#options
    if (!this.#isBroken) {
      this.#isBroken = true
      clearTimeout(this.#timer)
      breakOff(far)
      if (!machine.destroyed && !isComplete(machine)) {
        announceClose('reset')
        this.#hasAnnouncedEnd = true
        machine.end()
        // Closing the socket while the agent still writes would discard what the agent has not read.
        machine.resume()
        this.#timer = setTimeout(() => machine.destroy(), drainLimitMilliseconds)
      }
    }
    if (isComplete(machine)) machine.destroy()
    if (machine.closed) clearTimeout(this.#timer)
    if (machine.closed && far.closed) this.#ended.resolve(undefined)
  }

  /** Closes the connection when it becomes idle: a second without traffic after the destination answered last. */
  retire(): void {
    const { machine, far } = this.#options
    let [checks, idleChecks, received, sent] = [0, 0, far.bytesRead, machine.bytesRead]
    let isAnswered = received > this.#handshakeBytes
    const check = () => {
      const hasReceived = far.bytesRead !== received
      const hasSent = machine.bytesRead !== sent
      if (hasReceived || hasSent) isAnswered = hasReceived
      idleChecks = hasReceived || hasSent ? 0 : idleChecks + 1
      checks += 1
      ;[received, sent] = [far.bytesRead, machine.bytesRead]
      if (checks >= maxChecks || (isAnswered && idleChecks >= maxIdleChecks)) this.break()
      else this.#timer = setTimeout(check, idleCheckMilliseconds)
    }
    clearTimeout(this.#timer)
    this.#timer = setTimeout(check, idleCheckMilliseconds)
  }

  #machineEnded(): void {
    this.#hasMachineEnded = true
    if (this.#announcedClose === 'end') this.#options.far.end()
    else this.#timer = setTimeout(() => this.#announcedClose !== 'end' && this.break(), closeMessageLimitMilliseconds)
  }

  #farEnded(): void {
    if (this.#options.far.errored) return void this.break()
    if (!this.#hasAnnouncedEnd) this.#options.announceClose('end')
    this.#hasAnnouncedEnd = true
    this.#options.machine.end()
  }

  readonly #broken = () => this.break()

  readonly #sideClosed = () => {
    const { machine, far } = this.#options
    const isBroken = [machine, far].some((socket) => socket.closed && !isComplete(socket))
    if (isBroken || (machine.closed && far.closed)) this.break()
  }

  #failed(error: unknown): void {
    const { machine, far } = this.#options
    if (machine.writableLength > 0 || this.#hasAnnouncedEnd) {
      this.break()
      return
    }
    for (const pump of this.#pumps) pump.stop()
    for (const socket of [machine, far]) socket.off('error', this.#broken).off('close', this.#sideClosed)
    clearTimeout(this.#timer)
    breakOff(far)
    this.#ended.resolve(error)
  }
}

function isComplete(socket: Socket): boolean {
  return socket.readableEnded && socket.writableFinished
}

/** Closes a socket so that the peer does not take the stream for complete. */
function breakOff(socket: Socket): void {
  if (socket.destroyed) return
  // TLS sockets cannot send a reset, but the peer notices the missing TLS close. Unix sockets, such as berth's own,
  // cannot either.
  const isTcp = socket.remoteFamily !== undefined
  if (!isTcp || socket instanceof TLSSocket || isComplete(socket)) socket.destroy()
  else socket.resetAndDestroy()
}
