import { setTimeout as delay } from 'node:timers/promises'

/** Time for an action that was broken off to release what it has pressed. */
const cleanUpMilliseconds = 2_000

/** Lets one caller after another act, in the order they came in. */
export class InputLock {
  #last: Promise<unknown> = Promise.resolve()

  /**
   * A caller whose signal aborts while it waits gives up its place, and rejects with the signal's reason. One that acts
   * is expected to stop then: what does not has lost its turn a moment later.
   */
  async run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last
    const done = Promise.withResolvers<void>()
    this.#last = before.then(() => done.promise)
    const aborted = onAbort(signal)
    try {
      await Promise.race([before, aborted])
      signal.throwIfAborted()
      const working = work()
      working.catch(() => {}) // After its turn nobody else hears how it ends.
      const late = aborted.catch(async (reason) => {
        await delay(cleanUpMilliseconds, undefined, { ref: false })
        throw reason
      })
      late.catch(() => {}) // It may have stopped in time.
      return await Promise.race([working, late])
    } finally {
      aborted.stop()
      done.resolve()
    }
  }
}

/** Rejects with the signal's reason when it aborts, unless it was stopped before. */
function onAbort(signal: AbortSignal): Promise<never> & { stop(): void } {
  const aborted = Promise.withResolvers<never>()
  const leave = () => aborted.reject(signal.reason)
  if (signal.aborted) leave()
  else signal.addEventListener('abort', leave, { once: true })
  aborted.promise.catch(() => {})
  return Object.assign(aborted.promise, { stop: () => signal.removeEventListener('abort', leave) })
}
