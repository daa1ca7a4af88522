import {
  createVaultProviderConfig,
  deleteVaultProviderConfig,
  getVaultProviderConfig,
  listVaultProviderConfigs,
  updateVaultProviderConfig,
} from '@berth/contract/vaults/provider-config-endpoints.ts'
import type { MountForOrganizations } from '../../../access/mount-for-callers.ts'
import { providerConfigRecord } from './provider-config-record.ts'
import type { ProviderConfigService } from './provider-config-service.ts'

export function mountProviderConfigRoutes(
  mount: MountForOrganizations,
  { vaultProviderConfigs: configs }: { readonly vaultProviderConfigs: ProviderConfigService },
): void {
  mount(createVaultProviderConfig, async ({ caller, body }) => providerConfigRecord(await configs.create(caller, body)))

  mount(listVaultProviderConfigs, async ({ caller, query }) => {
    const page = await configs.list(caller, query)
    return { items: page.items.map(providerConfigRecord), hasMore: page.hasMore }
  })

  mount(getVaultProviderConfig, async ({ caller, params }) =>
    providerConfigRecord(await configs.get(caller, params.id_or_name)),
  )

  mount(updateVaultProviderConfig, async ({ caller, params, body }) =>
    providerConfigRecord(await configs.update(caller, params.id_or_name, body)),
  )

  mount(deleteVaultProviderConfig, ({ caller, params }) => configs.delete(caller, params.id_or_name))
}
