import type { Clock } from '@berth/runtime/async/clock.ts'
import { LoadingCache } from '@berth/runtime/async/loading-cache.ts'
import type { KeyScope, OrganizationStore } from '../features/organizations/organization-store.ts'

const ttlMilliseconds = 1_000
const maxKeys = 1_000

/**
 * Caches for a second which organization and project a key belongs to: a busy client sends hundreds of requests in that
 * time. A key that this server deletes is rejected at once, and one that another server deletes within a second.
 * Invalid keys are never cached.
 */
export class ApiKeyCache {
  readonly #organizations: OrganizationStore
  readonly #clock: Clock
  readonly #scopes: LoadingCache<string, KeyScope | undefined>

  constructor(organizations: OrganizationStore, clock: Clock) {
    this.#organizations = organizations
    this.#clock = clock
    this.#scopes = new LoadingCache({
      maxEntries: maxKeys,
      fresh: { milliseconds: ttlMilliseconds, clock },
      keeps: (scope) => scope !== undefined,
    })
  }

  async find(hash: Buffer): Promise<KeyScope | undefined> {
    const scope = await this.#scopes.get(hash.toString('base64'), () => this.#organizations.findKey(hash))
    const isExpired = scope?.expiresAt && scope.expiresAt <= this.#clock.now()
    return isExpired ? undefined : scope
  }

  /** Call after changes of keys or projects, which can make cached entries wrong. */
  clear(): void {
    this.#scopes.clear()
  }
}
