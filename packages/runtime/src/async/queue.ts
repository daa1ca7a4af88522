/** Runs work one after another, in the order of the calls. */
export class Queue {
  #last: Promise<void> = Promise.resolve()

  /**
   * Resolves or rejects as the work does; a failure does not keep later work from running. A caller whose signal aborts
   * while it waits gives up its place, and rejects with the signal's reason; work that runs goes on.
   */
  run<Result>(work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const giveUp = () => reject(signal?.reason)
    signal?.addEventListener('abort', giveUp, { once: true })
    this.#last = this.#last.then(async () => {
      if (signal?.aborted) return
      signal?.removeEventListener('abort', giveUp)
      await Promise.try(work).then(resolve, reject)
    })
    return promise
  }
}
