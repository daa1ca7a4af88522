/** Lets one caller after another act, in the order they came in. */
export class InputLock {
  #last: Promise<unknown> = Promise.resolve()

  /** A caller whose signal aborts while it waits gives up its place, and rejects with the signal's reason. */
  async run<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last
    const done = Promise.withResolvers<void>()
    this.#last = before.then(() => done.promise)
    try {
      await Promise.race([before, aborted(signal)])
      signal.throwIfAborted()
      return await work()
    } finally {
      done.resolve()
    }
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const leave = () => reject(signal.reason)
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
  })
}
