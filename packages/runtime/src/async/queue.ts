/** Runs work one after another, in the order of the calls. */
export class Queue {
  #last: Promise<void> = Promise.resolve()

  /**
   * Settles as the work does. A failure does not affect later work. If the signal aborts before the work starts, the
   * work is skipped and the promise rejects with the signal's reason. Work that has started continues.
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
