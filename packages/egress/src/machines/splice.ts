import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { ConnectionClosed } from '@berth/contract/egress/machine-protocol.ts'
import { deferWriteFailure } from '@berth/runtime/stream/deferred-write-failure.ts'
import type { MachineShare } from './machine-share.ts'
import { pump } from './pump.ts'

/** How long the word is waited for that says how a direction of the machine has ended. */
const wordLimitMilliseconds = 5_000
const retireLookMilliseconds = 250
/** After so many looks without a byte, a connection that is to end is taken for unused. */
const maxQuietLooks = 4
const maxLooks = 240

/** For so long the agent may take to read what has come before a break. */
const farewellMilliseconds = 2_000

export interface SpliceOptions {
  readonly machine: Socket
  readonly far: Socket
  readonly share: MachineShare
  /** Tells the machine how the direction towards it ends, before it does. */
  readonly tell: (how: ConnectionClosed['how']) => void
  /** What is sent on in the place of what comes, on the way out and on the way in. */
  readonly outgoing?: ((chunk: Buffer) => Buffer) | undefined
  readonly incoming?: ((chunk: Buffer) => Buffer) | undefined
}

/**
 * A connection of a machine joined to its far end. Each direction ends on its own; what breaks on one side breaks on the
 * other. It is over when both sockets are closed.
 */
export class Splice {
  readonly #options: SpliceOptions
  readonly #ended = Promise.withResolvers<unknown>()
  readonly #pumps: readonly { stop(): void }[]
  #word: ConnectionClosed['how'] | undefined
  #hasMachineEnded = false
  #hasToldEnd = false
  #isBroken = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: SpliceOptions) {
    this.#options = options
    const { machine, far, share, outgoing, incoming } = options
    deferWriteFailure(far)
    for (const socket of [machine, far]) socket.once('error', this.#broken).once('close', this.#sideClosed)
    const onFailure = (error: unknown) => this.#failed(error)
    this.#pumps = [
      pump({ from: machine, to: far, share, transform: outgoing, onFailure, onEnd: () => this.#machineEnded() }),
      pump({ from: far, to: machine, share, transform: incoming, onFailure, onEnd: () => this.#farEnded() }),
    ]
    // One that is closed already says so to nobody any more.
    if (machine.destroyed || far.destroyed) this.break()
  }

  /**
   * Resolves when both sides are closed; with an error when what passed could not be read, and then only the far end is
   * closed, and the machine has still to hear of it. Never rejects.
   */
  get ended(): Promise<unknown> {
    return this.#ended.promise
  }

  /** How the machine says that its direction ends, which may come before or after the end itself. */
  hear(how: ConnectionClosed['how']): void {
    this.#word ??= how
    if (how === 'reset') this.#options.machine.destroy()
    else if (this.#hasMachineEnded) this.#options.far.end()
  }

  /**
   * Closes both sides. Each sees a reset, unless it has come to its end; the machine behind what has come for it before,
   * which may be an answer that ends an upload.
   */
  break(): void {
    const { machine, far, tell } = this.#options
    if (!this.#isBroken) {
      this.#isBroken = true
      clearTimeout(this.#timer)
      breakOff(far)
      if (!machine.destroyed && !isComplete(machine)) {
        tell('reset')
        this.#hasToldEnd = true
        machine.end()
        // To close it while the agent still writes would cost the agent what it has not read.
        machine.resume()
        this.#timer = setTimeout(() => machine.destroy(), farewellMilliseconds)
      }
    }
    if (isComplete(machine)) machine.destroy()
    if (machine.closed) clearTimeout(this.#timer)
    if (machine.closed && far.closed) this.#ended.resolve(undefined)
  }

  /** Ends when it is not used any more: when nothing has come for a second after the far end spoke last. */
  retire(): void {
    const { machine, far } = this.#options
    let [looks, quietLooks, received, sent] = [0, 0, far.bytesRead, machine.bytesRead]
    let isAnswered = received > 0
    const look = () => {
      const hasReceived = far.bytesRead !== received
      const hasSent = machine.bytesRead !== sent
      if (hasReceived || hasSent) isAnswered = hasReceived
      quietLooks = hasReceived || hasSent ? 0 : quietLooks + 1
      looks += 1
      ;[received, sent] = [far.bytesRead, machine.bytesRead]
      if (looks >= maxLooks || (isAnswered && quietLooks >= maxQuietLooks)) this.break()
      else this.#timer = setTimeout(look, retireLookMilliseconds)
    }
    clearTimeout(this.#timer)
    this.#timer = setTimeout(look, retireLookMilliseconds)
  }

  #machineEnded(): void {
    this.#hasMachineEnded = true
    if (this.#word === 'end') this.#options.far.end()
    else this.#timer = setTimeout(() => this.#word !== 'end' && this.break(), wordLimitMilliseconds)
  }

  #farEnded(): void {
    if (this.#options.far.errored) return void this.break()
    if (!this.#hasToldEnd) this.#options.tell('end')
    this.#hasToldEnd = true
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
    if (machine.writableLength > 0 || this.#hasToldEnd) {
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

/** Ends a socket so that the other side does not take what it has for all. */
function breakOff(socket: Socket): void {
  if (socket.destroyed) return
  // Below TLS a reset is not to be had; its other side misses the end of TLS. Unix sockets, as that of berth, have none.
  const isTcp = socket.remoteFamily !== undefined
  if (!isTcp || socket instanceof TLSSocket || isComplete(socket)) socket.destroy()
  else socket.resetAndDestroy()
}
