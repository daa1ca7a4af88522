import { Queue } from '@berth/runtime/async/queue.ts'

/** Time for an aborted action to release what it has pressed. */
const cleanUpMilliseconds = 2_000

/** Lets callers act one at a time, in the order of their calls. */
export class InputLock {
  readonly #queue = new Queue()

  /**
   * A caller whose signal aborts while it waits leaves the queue, and rejects with the signal's reason. Running work
   * should stop then; if it does not, its turn ends a moment later.
   */
  run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    return this.#queue.run(() => endSoonAfter(signal, work()), signal)
  }
}

/** Settles like the work; if the signal aborts and the work continues regardless, rejects with the signal's reason. */
async function endSoonAfter<Result>(signal: AbortSignal, working: Promise<Result>): Promise<Result> {
  working.catch(() => {}) // After its turn nobody handles its outcome.
  const { promise: late, reject } = Promise.withResolvers<never>()
  const leave = () => {
    setTimeout(() => reject(signal.reason), cleanUpMilliseconds).unref()
  }
  signal.addEventListener('abort', leave, { once: true })
  late.catch(() => {}) // The work may have stopped in time.
  try {
    return await Promise.race([working, late])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}
