import { LRUCache } from 'lru-cache'
import type { Clock } from './clock.ts'

export interface LoadingCacheOptions<Value> {
  /** The least recently used entry makes room for one more. */
  readonly maxEntries: number
  /** For how long a value is used. Absent: until it makes room. */
  readonly fresh?: { readonly milliseconds: number; readonly clock: Clock }
  /** Whether to remember a value at all. Absent: always. */
  readonly keeps?: (value: Value) => boolean
}

/** Remembers what was loaded. Callers at the same time share one load; a failed one is not remembered. */
export class LoadingCache<Key extends {}, Value> {
  readonly #entries: LRUCache<Key, Promise<Value>>
  readonly #keeps: (value: Value) => boolean

  constructor({ maxEntries, fresh, keeps = () => true }: LoadingCacheOptions<Value>) {
    this.#entries = new LRUCache({
      max: maxEntries,
      ...(fresh && {
        // The package still uses a value of exactly that age, in whole milliseconds.
        ttl: fresh.milliseconds - 1,
        // The clock is asked each time: a test may have moved it.
        ttlResolution: 0,
        perf: { now: () => fresh.clock.now().getTime() },
      }),
    })
    this.#keeps = keeps
  }

  get(key: Key, load: () => Promise<Value>): Promise<Value> {
    const known = this.#entries.get(key)
    if (known) return known
    const loading = load()
    this.#entries.set(key, loading)
    loading.then(
      (value) => this.#keeps(value) || this.#forget(key, loading),
      () => this.#forget(key, loading),
    )
    return loading
  }

  /** What is loading now is not remembered, either. */
  clear(): void {
    this.#entries.clear()
  }

  #forget(key: Key, loading: Promise<Value>): void {
    if (this.#entries.peek(key) === loading) this.#entries.delete(key)
  }
}
