import { setTimeout as delay } from 'node:timers/promises'

export interface RetryOptions {
  readonly firstPauseMilliseconds: number
  /** Each pause is twice the one before, up to this. */
  readonly longestPauseMilliseconds: number
  /** A failure after this time is not followed by another attempt. */
  readonly patienceMilliseconds: number
  /** Ends the pauses, and with them the attempts. */
  readonly signal?: AbortSignal
  /** Whether another attempt may help. Absent: always. */
  readonly isTransient?: (error: unknown) => boolean
}

/** Repeats the work until it succeeds; rejects with the error of the last attempt. */
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
      await delay(pause, undefined, { signal }).catch(() => {}) // The abort is seen after the next attempt's failure.
      if (signal?.aborted) throw error
    }
  }
}
