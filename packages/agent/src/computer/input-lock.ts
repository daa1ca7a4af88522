import { Queue } from '@berth/runtime/async/queue.ts'

/** Time for an action that was broken off to release what it has pressed. */
const cleanUpMilliseconds = 2_000

/** Lets one caller after another act, in the order they came in. */
export class InputLock {
  readonly #queue = new Queue()

  /**
   * A caller whose signal aborts while it waits gives up its place, and rejects with the signal's reason. One that acts
   * is expected to stop then: what does not has lost its turn a moment later.
   */
  run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    return this.#queue.run(() => endSoonAfter(signal, work()), signal)
  }
}

/** As the work does; when the signal aborts and the work goes on nonetheless, rejects with the signal's reason. */
async function endSoonAfter<Result>(signal: AbortSignal, working: Promise<Result>): Promise<Result> {
  working.catch(() => {}) // After its turn nobody else hears how it ends.
  const { promise: late, reject } = Promise.withResolvers<never>()
  const leave = () => {
    setTimeout(() => reject(signal.reason), cleanUpMilliseconds).unref()
  }
  signal.addEventListener('abort', leave, { once: true })
  late.catch(() => {}) // It may have stopped in time.
  try {
    return await Promise.race([working, late])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}
