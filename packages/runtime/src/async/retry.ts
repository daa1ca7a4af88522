import { setTimeout as delay } from 'node:timers/promises'

export interface RetryOptions {
  readonly firstPauseMilliseconds: number
  /** Pauses double up to this length. */
  readonly longestPauseMilliseconds: number
  /** A failure after this time is final. */
  readonly patienceMilliseconds: number
  /** Ends the current pause and prevents further attempts. */
  readonly signal?: AbortSignal
  /** Whether another attempt may succeed. When absent, always. */
  readonly isTransient?: (error: unknown) => boolean
}

/** Repeats the work until it succeeds. Rejects with the error of the last attempt. */
export async function retry<Value>(work: () => Promise<Value>, options: RetryOptions): Promise<Value> {
  const { firstPauseMilliseconds, longestPauseMilliseconds, patienceMilliseconds, signal, isTransient } = options
  const begin = performance.now()
  for (let attempt = 0; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      const isOver = signal?.aborted || performance.now() - begin >= patienceMilliseconds
      if (isOver || isTransient?.(error) === false) throw error
      const pause = Math.min(firstPauseMilliseconds * 2 ** attempt, longestPauseMilliseconds)
      await delay(pause, undefined, { signal }).catch(() => {}) // The loop sees the abort after the next failure.
      if (signal?.aborted) throw error
    }
  }
}
