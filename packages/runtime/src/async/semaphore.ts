/** Admits a limited number of holders at a time. Others wait in the order of their calls. */
export class Semaphore {
  readonly #limit: number
  readonly #waiting: (() => void)[] = []
  #held = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** The number of waiting callers. */
  get waiting(): number {
    return this.#waiting.length
  }

  /** Rejects with the signal's reason when the signal aborts first. */
  async acquire(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    if (this.#held < this.#limit) {
      this.#held += 1
      return
    }
    const turn = Promise.withResolvers<void>()
    this.#waiting.push(turn.resolve)
    const giveUp = () => {
      const index = this.#waiting.indexOf(turn.resolve)
      if (index === -1) return // Already admitted.
      this.#waiting.splice(index, 1)
      turn.reject(signal?.reason)
    }
    signal?.addEventListener('abort', giveUp)
    await turn.promise.finally(() => signal?.removeEventListener('abort', giveUp))
  }

  /** Admits the caller that has waited longest. */
  release(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#held -= 1
  }
}
