import { Turn } from './turn.ts'

const KiB = 1024
const MiB = 1024 * KiB

/** What one connection may have waiting in one direction, as long as the machine has little waiting in all. */
const maxQueuedOfConnection = 256 * KiB
const muchQueued = 4 * MiB
const maxQueued = 64 * MiB
const maxLookups = 1_024
/** A lookup, and a connection, takes as long as copying so many bytes. */
const workBytes = 56 * KiB

/** What one machine may use of its egress process, whatever programs run in it. */
export class MachineShare {
  readonly turn = new Turn(() => this.#queued > muchQueued)
  #queued = 0
  #lookups = 0
  readonly #waiting: (() => void)[] = []

  /** Counts bytes that wait for a slow reader. False: there are too many, and the connection has to end. */
  addQueued(bytes: number): boolean {
    this.#queued += bytes
    return bytes <= 0 || this.#queued <= maxQueued
  }

  get queued(): number {
    return this.#queued
  }

  /** How much may wait in one direction before no more is read. */
  get queueLimit(): number {
    return this.#queued > muchQueued ? 0 : maxQueuedOfConnection
  }

  /** Resolves when one more name may be looked up. */
  async beginLookup(): Promise<void> {
    if (this.#lookups < maxLookups) this.#lookups += 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    await this.takeTurn()
  }

  /** Resolves when the machine may have some more work done. */
  async takeTurn(): Promise<void> {
    if (!this.turn.spend(workBytes)) await new Promise<void>((resolve) => this.turn.next(resolve))
  }

  endLookup(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#lookups -= 1
  }
}
