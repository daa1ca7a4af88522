import { Changes } from '@berth/runtime/async/changes.ts'

/** Other servers also change items, without a notification. */
const pollMilliseconds = 1_000

interface WaitOptions {
  readonly seconds: number
  readonly signal: AbortSignal
}

/** Lets callers wait for changes of items. */
export class ItemChanges {
  readonly #changes = new Changes()
  readonly #closed = new AbortController()

  notify(): void {
    this.#changes.notify()
  }

  /** Ends every wait. */
  close(): void {
    this.#closed.abort()
  }

  /** Polls until there is a result or the time is over. */
  async wait<Answer>(read: () => Promise<Answer | undefined>, { seconds, signal }: WaitOptions) {
    const end = performance.now() + seconds * 1000
    const over = AbortSignal.any([signal, this.#closed.signal])
    for (;;) {
      const answer = await read()
      const left = end - performance.now()
      if (answer !== undefined || left <= 0 || over.aborted) return answer
      await this.#changes.next(AbortSignal.any([over, AbortSignal.timeout(Math.min(left, pollMilliseconds))]))
    }
  }
}
