/** Lets concurrent callers share one run of the same work. */
export class SingleFlight<Key, Value> {
  readonly #running = new Map<Key, Promise<Value>>()

  /** Joins the current run of the key or starts one. Later calls start again, whatever the result was. */
  run(key: Key, work: () => Promise<Value>): Promise<Value> {
    const known = this.#running.get(key)
    if (known) return known
    const running = work().finally(() => this.#running.delete(key))
    this.#running.set(key, running)
    return running
  }

  /** Resolves when all current runs have settled. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#running.values())
  }
}
