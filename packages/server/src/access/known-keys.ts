import type { Clock } from '@berth/runtime/async/clock.ts'
import { LoadingCache } from '@berth/runtime/async/loading-cache.ts'
import type { KeyScope, OrganizationStore } from '../features/organizations/organization-store.ts'

const freshMilliseconds = 1_000
const maxKeys = 1_000

/**
 * Remembers for a second whose a key is: a busy client asks hundreds of times in it. A key that this server deletes is
 * refused at once, one that another server deletes after that second at the latest. One that is not valid is asked for
 * every time.
 */
export class KnownKeys {
  readonly #organizations: OrganizationStore
  readonly #clock: Clock
  readonly #scopes: LoadingCache<string, KeyScope | undefined>

  constructor(organizations: OrganizationStore, clock: Clock) {
    this.#organizations = organizations
    this.#clock = clock
    this.#scopes = new LoadingCache({
      maxEntries: maxKeys,
      fresh: { milliseconds: freshMilliseconds, clock },
      keeps: (scope) => scope !== undefined,
    })
  }

  async find(hash: Buffer): Promise<KeyScope | undefined> {
    const scope = await this.#scopes.get(hash.toString('base64'), () => this.#organizations.findKey(hash))
    const isExpired = scope?.expiresAt && scope.expiresAt <= this.#clock.now()
    return isExpired ? undefined : scope
  }

  /** Something about keys or projects has changed: what is remembered may be no longer true. */
  forget(): void {
    this.#scopes.clear()
  }
}
