import { newId, type OrganizationId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type {
  VaultProviderConfigCreateRequest,
  VaultProviderConfigUpdateRequest,
} from '@berth/contract/vaults/provider-config-endpoints.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { OrganizationCaller } from '../../../access/caller.ts'
import { requireOrganizationKey } from '../../../access/require-organization-key.ts'
import type { ProjectSecrets } from '../../../secrets/project-secrets.ts'
import type { ProviderConfigStore, StoredProviderConfig } from './provider-config-store.ts'

interface ProviderConfigServiceOptions {
  readonly store: ProviderConfigStore
  readonly secrets: ProjectSecrets
  readonly clock: Clock
}

/**
 * The rules of payment provider configs. They belong to the organization, and keys of one project can only read them.
 */
export class ProviderConfigService {
  readonly #store: ProviderConfigStore
  readonly #secrets: ProjectSecrets
  readonly #clock: Clock

  constructor({ store, secrets, clock }: ProviderConfigServiceOptions) {
    this.#store = store
    this.#secrets = secrets
    this.#clock = clock
  }

  async create(caller: OrganizationCaller, request: VaultProviderConfigCreateRequest): Promise<StoredProviderConfig> {
    requireOrganizationKey(caller)
    const now = this.#clock.now()
    const id = newId('vault-provider-config', now)
    const { provider, name, credentials } = request
    return this.#store.insert({
      id,
      organization_id: caller.organizationId,
      provider,
      name,
      client_id: credentials.client_id,
      publishable_key: 'publishable_key' in credentials ? (credentials.publishable_key ?? null) : null,
      sealed_client_secret: await this.#seal(caller.organizationId, id, credentials.client_secret),
      created_at: now,
      updated_at: now,
    })
  }

  async list({ organizationId }: OrganizationCaller, page: PageRequest): Promise<Page<StoredProviderConfig>> {
    return this.#store.list(organizationId, page)
  }

  async get({ organizationId }: OrganizationCaller, idOrName: string): Promise<StoredProviderConfig> {
    return found(await this.#store.find(organizationId, idOrName), idOrName)
  }

  async update(
    caller: OrganizationCaller,
    idOrName: string,
    { name, credentials = {} }: VaultProviderConfigUpdateRequest,
  ): Promise<StoredProviderConfig> {
    requireOrganizationKey(caller)
    const { id, provider, organization_id } = await this.get(caller, idOrName)
    const { client_secret, publishable_key } = credentials
    if (publishable_key !== undefined && provider !== 'link') {
      const reason = `credentials.publishable_key: is not supported for ${provider}.`
      throw new BerthError('invalid_input', { reason })
    }
    const updated = await this.#store.update(id, {
      ...(name !== undefined && { name }),
      ...(publishable_key !== undefined && { publishable_key }),
      ...(client_secret !== undefined && {
        sealed_client_secret: await this.#seal(organization_id, id, client_secret),
      }),
      updated_at: this.#clock.now(),
    })
    return found(updated, idOrName)
  }

  async delete(caller: OrganizationCaller, idOrName: string): Promise<void> {
    requireOrganizationKey(caller)
    const { id } = await this.get(caller, idOrName)
    if (!(await this.#store.delete(id))) throw new BerthError('vault_provider_config_not_found', { config: idOrName })
  }

  #seal(organizationId: OrganizationId, id: string, secret: string): Promise<Buffer> {
    return this.#secrets.sealForOrganization(organizationId, secret, `vault provider config ${id}`)
  }
}

function found(config: StoredProviderConfig | undefined, idOrName: string): StoredProviderConfig {
  if (!config) throw new BerthError('vault_provider_config_not_found', { config: idOrName })
  return config
}
