import { newId, type OrganizationId, type ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import type {
  CredentialProviderCreateRequest,
  CredentialProviderUpdateRequest,
} from '@berth/contract/credential-providers/credential-provider-endpoints.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { OrganizationCaller } from '../../access/caller.ts'
import { requireOrganizationKey } from '../../access/require-organization-key.ts'
import type { ProjectSecrets } from '../../secrets/project-secrets.ts'
import {
  type ProviderClient,
  ProviderFailure,
  type ProviderItem,
  type ProviderLogin,
  type ProviderVault,
} from './provider-client.ts'
import type { ProviderStore, StoredProvider } from './provider-store.ts'

const maxCachedLists = 200

interface CredentialProviderServiceOptions {
  readonly store: ProviderStore
  readonly secrets: ProjectSecrets
  readonly client: ProviderClient
  readonly clock: Clock
}

interface CachedItems {
  readonly items: readonly ProviderItem[]
  /** The version of the provider when it was queried. Another server may have changed it since. */
  readonly updatedAt: Date
  readonly until: Date
}

export interface ProviderTest {
  readonly vaults: readonly ProviderVault[]
  readonly error?: string
}

/**
 * The rules of credential providers. They belong to the organization, and keys of one project see only that they exist.
 * Values of items are read only for logins, and only the encrypted token of a provider is stored.
 */
export class CredentialProviderService {
  readonly #store: ProviderStore
  readonly #secrets: ProjectSecrets
  readonly #client: ProviderClient
  readonly #clock: Clock
  readonly #cache = new Map<string, CachedItems>()

  constructor({ store, secrets, client, clock }: CredentialProviderServiceOptions) {
    this.#store = store
    this.#secrets = secrets
    this.#client = client
    this.#clock = clock
  }

  async create(caller: OrganizationCaller, request: CredentialProviderCreateRequest): Promise<StoredProvider> {
    requireOrganizationKey(caller)
    const now = this.#clock.now()
    const id = newId('credential-provider', now)
    return this.#store.insert({
      id,
      organization_id: caller.organizationId,
      provider_type: request.provider_type,
      name: request.name,
      cache_ttl_seconds: request.cache_ttl_seconds,
      sealed_token: await this.#seal(caller.organizationId, id, request.token),
      created_at: now,
      updated_at: now,
    })
  }

  async list(
    { organizationId }: OrganizationCaller,
    text: string | undefined,
    page: PageRequest,
  ): Promise<Page<StoredProvider>> {
    return this.#store.list(organizationId, text, page)
  }

  async get({ organizationId }: OrganizationCaller, id: string): Promise<StoredProvider> {
    return found(await this.#store.find(organizationId, id), id)
  }

  async update(
    caller: OrganizationCaller,
    id: string,
    { token, ...change }: CredentialProviderUpdateRequest,
  ): Promise<StoredProvider> {
    requireOrganizationKey(caller)
    const { organizationId } = caller
    // Also done for an unknown provider. The encrypted value is then discarded.
    const sealed = token === undefined ? {} : { sealed_token: await this.#seal(organizationId, id, token) }
    const columns = { ...withoutAbsent(change), ...sealed, updated_at: this.#clock.now() }
    const updated = await this.#store.update(organizationId, id, columns)
    this.#cache.delete(id)
    return found(updated, id)
  }

  async delete(caller: OrganizationCaller, id: string): Promise<void> {
    requireOrganizationKey(caller)
    const isDeleted = await this.#store.delete(caller.organizationId, id)
    this.#cache.delete(id)
    if (!isDeleted) throw new BerthError('credential_provider_not_found', { provider: id })
  }

  async test(caller: OrganizationCaller, id: string): Promise<ProviderTest> {
    requireOrganizationKey(caller)
    const provider = await this.get(caller, id)
    try {
      const vaults = await this.#client.listVaults(await this.#token(provider))
      await this.get(caller, id)
      return { vaults }
    } catch (error) {
      if (error instanceof ProviderFailure) return { vaults: [], error: error.message }
      throw error
    }
  }

  async listItems(caller: OrganizationCaller, id: string): Promise<readonly ProviderItem[]> {
    requireOrganizationKey(caller)
    return this.#items(await this.get(caller, id), () => this.get(caller, id))
  }

  /** The provider with this name in the organization of the project. */
  async findForProject(projectId: ProjectId, name: string): Promise<StoredProvider | undefined> {
    return this.#store.findForProject(projectId, name)
  }

  /**
   * The login of an item, found by its path or as the first one with an address of the domain. Undefined if there is
   * none. It is read each time and never stored.
   */
  async readLogin(
    organizationId: OrganizationId,
    id: string,
    wanted: { readonly path: string } | { readonly domain: string },
  ): Promise<ProviderLogin | undefined> {
    const find = async () => found(await this.#store.find(organizationId, id), id)
    const provider = await find()
    if (!provider.enabled) throw new BerthError('credential_provider_failed', { reason: 'The provider is disabled.' })
    const items = await this.#items(provider, find)
    const item = items.find((known) => ('path' in wanted ? hasPath(known, wanted.path) : isOf(known, wanted.domain)))
    return item && this.#client.readLogin(await this.#token(provider), item).catch(throwFailed)
  }

  async #items(provider: StoredProvider, find: () => Promise<StoredProvider>): Promise<readonly ProviderItem[]> {
    const { id } = provider
    const known = this.#cache.get(id)
    if (known && isSameTime(known.updatedAt, provider.updated_at) && this.#clock.now() < known.until) return known.items

    const items = await this.#client.listItems(await this.#token(provider)).catch(throwFailed)
    // The provider may have been deleted, or its token changed, during the query.
    const still = await find()
    if (isSameTime(still.updated_at, provider.updated_at)) this.#cacheItems(still, items)
    return items
  }

  #cacheItems({ id, cache_ttl_seconds, updated_at }: StoredProvider, items: readonly ProviderItem[]): void {
    if (this.#cache.size >= maxCachedLists) this.#cache.clear()
    const until = new Date(this.#clock.now().getTime() + cache_ttl_seconds * 1000)
    this.#cache.set(id, { items, updatedAt: updated_at, until })
  }

  #seal(organizationId: OrganizationId, id: string, token: string): Promise<Buffer> {
    return this.#secrets.sealForOrganization(organizationId, token, contextOf(id))
  }

  #token({ organization_id, id, sealed_token }: StoredProvider): Promise<string> {
    return this.#secrets.unsealForOrganization(organization_id, sealed_token, contextOf(id))
  }
}

function contextOf(id: string): string {
  return `credential provider ${id}`
}

function throwFailed(error: unknown): never {
  if (!(error instanceof ProviderFailure)) throw error
  throw new BerthError('credential_provider_failed', { reason: error.message }, { cause: error })
}

function hasPath({ vault, title }: ProviderItem, path: string): boolean {
  return `${vault.name}/${title}` === path
}

/** `*.example.com` matches the hosts below it. */
function isOf({ urls }: ProviderItem, domain: string): boolean {
  return urls.some((url) => {
    const host = (URL.parse(url) ?? URL.parse(`https://${url}`))?.hostname.replace(/^www\./, '') ?? ''
    if (host.startsWith('*.')) return domain.endsWith(host.slice(1))
    return host === domain.replace(/^www\./, '')
  })
}

function isSameTime(one: Date, other: Date): boolean {
  return one.getTime() === other.getTime()
}

function found(provider: StoredProvider | undefined, id: string): StoredProvider {
  if (!provider) throw new BerthError('credential_provider_not_found', { provider: id })
  return provider
}

function withoutAbsent<Fields extends object>(fields: Fields) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Fields]?: Exclude<Fields[Name], undefined>
  }
}
