/** Wakes everyone who waits for a change. A finished wait leaves no listener behind on its signal. */
export class Changes {
  readonly #waiting = new Set<() => void>()

  notify(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const wake of waiting) wake()
  }

  /** Resolves at the next change, or when the signal aborts. */
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

  /** The number of waiting callers. */
  get size(): number {
    return this.#waiting.size
  }
}
