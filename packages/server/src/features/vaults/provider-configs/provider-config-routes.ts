import {
  createVaultProviderConfig,
  deleteVaultProviderConfig,
  getVaultProviderConfig,
  listVaultProviderConfigs,
  updateVaultProviderConfig,
  type VaultProviderConfig,
} from '@berth/contract/vaults/provider-config-endpoints.ts'
import type { MountForOrganizations } from '../../../access/mount-for-callers.ts'
import type { ProviderConfigService } from './provider-config-service.ts'
import type { StoredProviderConfig } from './provider-config-store.ts'

export function mountProviderConfigRoutes(
  mount: MountForOrganizations,
  { vaultProviderConfigs: configs }: { readonly vaultProviderConfigs: ProviderConfigService },
): void {
  mount(createVaultProviderConfig, async ({ caller, body }) => record(await configs.create(caller, body)))

  mount(listVaultProviderConfigs, async ({ caller, query }) => {
    const page = await configs.list(caller, query)
    return { items: page.items.map(record), hasMore: page.hasMore }
  })

  mount(getVaultProviderConfig, async ({ caller, params }) => record(await configs.get(caller, params.id_or_name)))

  mount(updateVaultProviderConfig, async ({ caller, params, body }) =>
    record(await configs.update(caller, params.id_or_name, body)),
  )

  mount(deleteVaultProviderConfig, ({ caller, params }) => configs.delete(caller, params.id_or_name))
}

function record(config: StoredProviderConfig): VaultProviderConfig {
  const { id, name, client_id, provider, publishable_key } = config
  const facts = {
    ...{ id, name, client_id },
    created_at: config.created_at.toISOString(),
    updated_at: config.updated_at.toISOString(),
  }
  if (provider === 'link') return { ...facts, provider, ...(publishable_key !== null && { publishable_key }) }
  return { ...facts, provider, test_mode: isTestClient(client_id) }
}

/** The provider marks clients of its test environment so. */
function isTestClient(clientId: string): boolean {
  return /(^|[_-])(test|sandbox)([_-]|$)/.test(clientId)
}
