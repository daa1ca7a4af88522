/** Runs the work of each key in the order of the calls. Different keys do not wait for each other. */
export class KeyedQueue<Key> {
  readonly #last = new Map<Key, Promise<void>>()

  /** Settles as the work does. A failure does not affect later work. */
  run<Result>(key: Key, work: () => Promise<Result>): Promise<Result> {
    const result = (this.#last.get(key) ?? Promise.resolve()).then(work)
    const settled: Promise<void> = result.then(forget, forget)
    this.#last.set(key, settled)
    const last = this.#last
    return result

    function forget(): void {
      if (last.get(key) === settled) last.delete(key)
    }
  }

  /** The number of keys with work. */
  get size(): number {
    return this.#last.size
  }
}
