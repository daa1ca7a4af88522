/** Wakes all who wait for something to change. A wait that has ended leaves nothing behind, however many follow it. */
export class Changes {
  readonly #waiting = new Set<() => void>()

  notify(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const wake of waiting) wake()
  }

  /** Resolves with the next change, or when the signal aborts. */
  next(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const wake = () => {
        signal.removeEventListener('abort', wake)
        this.#waiting.delete(wake)
        resolve()
      }
      signal.addEventListener('abort', wake)
      this.#waiting.add(wake)
    })
  }

  /** How many wait. */
  get size(): number {
    return this.#waiting.size
  }
}
