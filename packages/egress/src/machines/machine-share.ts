import { Turn } from './turn.ts'

const KiB = 1024
const MiB = 1024 * KiB

/** The bytes that one connection may queue in one direction while the machine queues little overall. */
const maxQueuedOfConnection = 256 * KiB
const muchQueued = 4 * MiB
const maxQueued = 64 * MiB
const maxLookups = 1_024
/** A lookup or a new connection takes about as long as copying this many bytes. */
const workBytes = 56 * KiB

/** Limits what one machine may use of its egress process, whatever programs run in it. */
export class MachineShare {
  readonly turn = new Turn(() => this.#queued > muchQueued)
  #queued = 0
  #lookups = 0
  readonly #waiting: (() => void)[] = []

  /**
   * Counts bytes that wait for a slow reader. Returns false when the limit is exceeded and the connection has to end.
   */
  addQueued(bytes: number): boolean {
    this.#queued += bytes
    return bytes <= 0 || this.#queued <= maxQueued
  }

  get queued(): number {
    return this.#queued
  }

  /** How many bytes may be queued in one direction before reading pauses. */
  get queueLimit(): number {
    return this.#queued > muchQueued ? 0 : maxQueuedOfConnection
  }

  /** Resolves when another lookup may start. */
  async beginLookup(): Promise<void> {
    if (this.#lookups < maxLookups) this.#lookups += 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    await this.takeTurn()
  }

  /** Resolves when the machine has processing time left in a turn. */
  async takeTurn(): Promise<void> {
    if (!this.turn.spend(workBytes)) await new Promise<void>((resolve) => this.turn.next(resolve))
  }

  endLookup(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#lookups -= 1
  }
}
