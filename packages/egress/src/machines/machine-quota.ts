import { TimeSlice } from './streams/time-slice.ts'

const KiB = 1024
const MiB = 1024 * KiB

/** The bytes that one connection may queue in one direction while the machine queues little overall. */
const maxQueuedBytesPerConnection = 256 * KiB
const congestedBytes = 4 * MiB
const maxQueuedBytes = 64 * MiB
const maxLookups = 1_024
/** A lookup or a new connection takes about as long as copying this many bytes. */
const workCostBytes = 56 * KiB

/** Limits what one machine may use of its egress process, whatever programs run in it. */
export class MachineQuota {
  readonly timeSlice = new TimeSlice(() => this.#queued > congestedBytes)
  #queued = 0
  #lookups = 0
  readonly #waiting: (() => void)[] = []

  /**
   * Counts bytes that wait for a slow reader. Returns false when the limit is exceeded and the connection has to end.
   */
  addQueued(bytes: number): boolean {
    this.#queued += bytes
    return bytes <= 0 || this.#queued <= maxQueuedBytes
  }

  get queued(): number {
    return this.#queued
  }

  /** How many bytes may be queued in one direction before reading pauses. */
  get queueLimit(): number {
    return this.#queued > congestedBytes ? 0 : maxQueuedBytesPerConnection
  }

  /** Resolves when another lookup may start. */
  async beginLookup(): Promise<void> {
    if (this.#lookups < maxLookups) this.#lookups += 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    await this.awaitSlice()
  }

  /** Resolves when the machine has processing time left in a turn. */
  async awaitSlice(): Promise<void> {
    if (!this.timeSlice.spend(workCostBytes)) await new Promise<void>((resolve) => this.timeSlice.resumeLater(resolve))
  }

  endLookup(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#lookups -= 1
  }
}
