import { setTimeout as delay } from 'node:timers/promises'

/** Time between the error of a shortened wait, which code can catch, and the end of the call itself. */
const marginMilliseconds = 250
const pollMilliseconds = 50

/** The time limit of the running call. */
export class Deadline {
  #at = Number.POSITIVE_INFINITY

  set(timeoutMilliseconds: number): void {
    this.#at = performance.now() + Math.max(timeoutMilliseconds - marginMilliseconds, timeoutMilliseconds * 0.75)
  }

  /** The requested wait in milliseconds, shortened to the time that is left. */
  within(seconds = Number.POSITIVE_INFINITY): number {
    return Math.max(Math.min(seconds * 1000, this.#at - performance.now()), 0)
  }

  /** Polls until there is a value; undefined if there is none in time. */
  async poll<Value>(seconds: number, ask: () => Promise<Value | undefined>): Promise<Value | undefined> {
    const end = performance.now() + this.within(seconds)
    for (;;) {
      const answer = await this.race(end - performance.now(), ask())
      if (answer !== undefined) return answer
      if (performance.now() + pollMilliseconds >= end) return undefined
      await delay(pollMilliseconds)
    }
  }

  /** The value, or undefined if it does not arrive in time. */
  async race<Value>(milliseconds: number, value: Promise<Value>): Promise<Value | undefined> {
    const stop = new AbortController()
    const late = delay(Math.min(Math.max(milliseconds, 0), 2 ** 31 - 1), undefined, { signal: stop.signal })
    value.catch(() => {}) // After the wait its outcome is ignored.
    try {
      return await Promise.race([value, late])
    } finally {
      late.catch(() => {})
      stop.abort()
    }
  }
}
