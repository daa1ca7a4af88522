import type { OrganizationId, ProjectId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { LoadingCache } from '@berth/runtime/async/loading-cache.ts'
import type { KeyScope, OrganizationStore, ScopeOwner } from '../features/organizations/organization-store.ts'

const ttlMilliseconds = 1_000
const maxKeys = 1_000

/**
 * Caches the organization and project of a key for one second: a busy client sends hundreds of requests in that time. A
 * key that this server deletes is rejected immediately, and one that another server deletes within a second. The same
 * applies to access tokens. Invalid keys are never cached.
 */
export class ApiKeyCache {
  readonly #organizations: OrganizationStore
  readonly #clock: Clock
  readonly #scopes: LoadingCache<string, KeyScope | undefined>
  readonly #owners: LoadingCache<string, ScopeOwner | undefined>

  constructor(organizations: OrganizationStore, clock: Clock) {
    this.#organizations = organizations
    this.#clock = clock
    this.#scopes = new LoadingCache({
      maxEntries: maxKeys,
      fresh: { milliseconds: ttlMilliseconds, clock },
      keeps: (scope) => scope !== undefined,
    })
    this.#owners = new LoadingCache({
      maxEntries: maxKeys,
      fresh: { milliseconds: ttlMilliseconds, clock },
      keeps: (owner) => owner !== undefined,
    })
  }

  async find(hash: Buffer): Promise<KeyScope | undefined> {
    const scope = await this.#scopes.get(hash.toString('base64'), () => this.#organizations.findKey(hash))
    const isExpired = scope?.expiresAt && scope.expiresAt <= this.#clock.now()
    return isExpired ? undefined : scope
  }

  /** The owner of an access token, which contains an organization and possibly a project of it. */
  async findOwner(organizationId: OrganizationId, projectId: ProjectId | null): Promise<ScopeOwner | undefined> {
    return this.#owners.get(`${organizationId} ${projectId}`, () =>
      this.#organizations.findOwner(organizationId, projectId),
    )
  }

  /** Call after changes of keys or projects, which can invalidate cached entries. */
  clear(): void {
    this.#scopes.clear()
    this.#owners.clear()
  }
}
