import type { Clock } from '@berth/runtime/async/clock.ts'

/** A cache with an expiry per entry. When full, it drops the least recently used entry. */
export class NameCache<Value> {
  readonly #clock: Clock
  readonly #maxEntries: number
  readonly #entries = new Map<string, { readonly value: Value; readonly expiresAt: number }>()

  constructor(clock: Clock, maxEntries: number) {
    this.#clock = clock
    this.#maxEntries = maxEntries
  }

  get size(): number {
    return this.#entries.size
  }

  /** Returns the value and its remaining lifetime in seconds. */
  find(key: string): { readonly value: Value; readonly seconds: number } | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    this.#entries.delete(key)
    const milliseconds = entry.expiresAt - this.#clock.now().getTime()
    if (milliseconds <= 0) return undefined
    this.#entries.set(key, entry)
    return { value: entry.value, seconds: Math.ceil(milliseconds / 1_000) }
  }

  set(key: string, value: Value, seconds: number): void {
    this.#entries.delete(key)
    if (seconds <= 0) return
    this.#entries.set(key, { value, expiresAt: this.#clock.now().getTime() + seconds * 1_000 })
    const [oldest] = this.#entries.keys()
    if (this.#entries.size > this.#maxEntries && oldest !== undefined) this.#entries.delete(oldest)
  }
}
