import type { Clock } from '@berth/runtime/async/clock.ts'
import type { KeyScope, OrganizationStore } from '../features/organizations/organization-store.ts'

const freshMilliseconds = 1_000
const maxKeys = 1_000

/**
 * Remembers for a second whose a key is: a busy client asks hundreds of times in it. A key that is deleted is refused
 * after that second at the latest; one that is not valid is asked for every time.
 */
export class KnownKeys {
  readonly #organizations: OrganizationStore
  readonly #clock: Clock
  readonly #scopes = new Map<string, { readonly scope: Promise<KeyScope | undefined>; readonly until: number }>()

  constructor(organizations: OrganizationStore, clock: Clock) {
    this.#organizations = organizations
    this.#clock = clock
  }

  find(hash: Buffer): Promise<KeyScope | undefined> {
    const name = hash.toString('base64')
    const known = this.#scopes.get(name)
    const now = this.#clock.now().getTime()
    if (known && now < known.until) return known.scope

    if (this.#scopes.size >= maxKeys) this.#scopes.clear()
    const scope = this.#organizations.findKey(hash)
    this.#scopes.set(name, { scope, until: now + freshMilliseconds })
    const forget = () => void this.#scopes.delete(name)
    scope.then((found) => found ?? forget()).catch(forget)
    return scope
  }
}
