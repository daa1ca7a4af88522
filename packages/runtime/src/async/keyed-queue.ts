/** Runs the work of one key one after another, in the order of the calls; different keys do not wait for each other. */
export class KeyedQueue<Key> {
  readonly #last = new Map<Key, Promise<void>>()

  /** Resolves or rejects as the work does. A failure does not keep later work of the key from running. */
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

  /** How many keys have work. */
  get size(): number {
    return this.#last.size
  }
}
