import { LRUCache } from 'lru-cache'
import type { Clock } from './clock.ts'

export interface LoadingCacheOptions<Value> {
  /** Beyond it, the least recently used entry is removed. */
  readonly maxEntries: number
  /** The lifetime of a value. When absent, values do not expire. */
  readonly fresh?: { readonly milliseconds: number; readonly clock: Clock }
  /** Whether to cache a value. When absent, all values are cached. */
  readonly keeps?: (value: Value) => boolean
}

/** Caches loaded values. Concurrent callers share one load. Failed loads are not cached. */
export class LoadingCache<Key extends {}, Value> {
  readonly #entries: LRUCache<Key, Promise<Value>>
  readonly #keeps: (value: Value) => boolean

  constructor({ maxEntries, fresh, keeps = () => true }: LoadingCacheOptions<Value>) {
    this.#entries = new LRUCache({
      max: maxEntries,
      ...(fresh && {
        // The package still returns a value of exactly this age in whole milliseconds.
        ttl: fresh.milliseconds - 1,
        // Reads the clock on each call, because a test may have moved it.
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

  /** Also prevents loads in progress from being cached. */
  clear(): void {
    this.#entries.clear()
  }

  #forget(key: Key, loading: Promise<Value>): void {
    if (this.#entries.peek(key) === loading) this.#entries.delete(key)
  }
}
