/** Lets callers at the same time share one run of the same work. */
export class SingleFlight<Key, Value> {
  readonly #running = new Map<Key, Promise<Value>>()

  /** Joins the run of the key that is under way, or starts one. A later call starts anew, whatever came of this one. */
  run(key: Key, work: () => Promise<Value>): Promise<Value> {
    const known = this.#running.get(key)
    if (known) return known
    const running = work().finally(() => this.#running.delete(key))
    this.#running.set(key, running)
    return running
  }

  /** Resolves when all that runs now has ended, well or not. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#running.values())
  }
}
