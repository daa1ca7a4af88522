import { setTimeout as delay } from 'node:timers/promises'

/** Time for a wait that was cut to fail as code can catch it, before the call itself is ended. */
const marginMilliseconds = 250
const pollMilliseconds = 50

/** When the call that runs has to be over. */
export class Deadline {
  #at = Number.POSITIVE_INFINITY

  set(timeoutMilliseconds: number): void {
    this.#at = performance.now() + Math.max(timeoutMilliseconds - marginMilliseconds, timeoutMilliseconds * 0.75)
  }

  /** The wait that is left of what was asked for. */
  within(seconds = Number.POSITIVE_INFINITY): number {
    return Math.max(Math.min(seconds * 1000, this.#at - performance.now()), 0)
  }

  /** Asks again and again until there is an answer; undefined when there is none in time. */
  async poll<Value>(seconds: number, ask: () => Promise<Value | undefined>): Promise<Value | undefined> {
    const end = performance.now() + this.within(seconds)
    for (;;) {
      const answer = await this.race(end - performance.now(), ask())
      if (answer !== undefined) return answer
      if (performance.now() + pollMilliseconds >= end) return undefined
      await delay(pollMilliseconds)
    }
  }

  /** The value, or undefined when it does not come in time. */
  async race<Value>(milliseconds: number, value: Promise<Value>): Promise<Value | undefined> {
    const stop = new AbortController()
    const late = delay(Math.min(Math.max(milliseconds, 0), 2 ** 31 - 1), undefined, { signal: stop.signal })
    value.catch(() => {}) // After the wait nobody else hears how it ends.
    try {
      return await Promise.race([value, late])
    } finally {
      late.catch(() => {})
      stop.abort()
    }
  }
}
