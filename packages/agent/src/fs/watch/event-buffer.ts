import type { FsEvent } from '@berth/contract/agent/operations/fs-types.ts'
import { Changes } from '@berth/runtime/async/changes.ts'

/**
 * Events that wait for a reader; each goes to one reader. When the buffer is full, the newest events are replaced by
 * one event of the watched path itself, which means that the reader should look again.
 */
export class EventBuffer {
  readonly #limit: number
  readonly #lookAgain: FsEvent
  readonly #events: FsEvent[] = []
  #hasLost = false
  #isClosed = false
  readonly #changes = new Changes()

  constructor(limit: number, lookAgain: FsEvent) {
    this.#limit = limit
    this.#lookAgain = lookAgain
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  push(event: FsEvent): void {
    if (this.#events.length >= this.#limit) this.#hasLost = true
    else this.#events.push(event)
    this.#changes.notify()
  }

  /** Records that events were lost. */
  lose(): void {
    this.#hasLost = true
    this.#changes.notify()
  }

  /** Ends every reader after it has read the remaining events. */
  close(): void {
    this.#isClosed = true
    this.#changes.notify()
  }

  /** All events from now on that no other reader takes. */
  async *read(signal: AbortSignal): AsyncGenerator<FsEvent> {
    while (!signal.aborted) {
      const next = this.#take()
      if (next) yield next
      else if (this.#isClosed) return
      else await this.#changes.next(signal)
    }
  }

  #take(): FsEvent | undefined {
    const next = this.#events.shift()
    if (this.#hasLost && this.#events.length < this.#limit) {
      this.#hasLost = false
      if (!next) return this.#lookAgain
      this.#events.push(this.#lookAgain)
    }
    return next
  }
}
