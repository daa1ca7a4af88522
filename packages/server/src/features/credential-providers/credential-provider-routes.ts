import {
  type CredentialProvider,
  createCredentialProvider,
  deleteCredentialProvider,
  getCredentialProvider,
  listCredentialProviderItems,
  listCredentialProviders,
  testCredentialProvider,
  updateCredentialProvider,
} from '@berth/contract/credential-providers/credential-provider-endpoints.ts'
import type { MountForOrganizations } from '../../access/mount-for-callers.ts'
import type { CredentialProviderService } from './credential-provider-service.ts'

type StoredProvider = Awaited<ReturnType<CredentialProviderService['get']>>

export function mountCredentialProviderRoutes(
  mount: MountForOrganizations,
  { credentialProviders: providers }: { readonly credentialProviders: CredentialProviderService },
): void {
  mount(createCredentialProvider, async ({ caller, body }) => record(await providers.create(caller, body)))

  mount(listCredentialProviders, async ({ caller, query }) => {
    const page = await providers.list(caller, query.query, query)
    return { items: page.items.map(record), hasMore: page.hasMore }
  })

  mount(getCredentialProvider, async ({ caller, params }) => record(await providers.get(caller, params.id)))

  mount(updateCredentialProvider, async ({ caller, params, body }) =>
    record(await providers.update(caller, params.id, body)),
  )

  mount(deleteCredentialProvider, ({ caller, params }) => providers.delete(caller, params.id))

  mount(testCredentialProvider, async ({ caller, params }) => {
    const { vaults, error } = await providers.test(caller, params.id)
    return { success: error === undefined, vaults: [...vaults], ...(error !== undefined && { error }) }
  })

  mount(listCredentialProviderItems, async ({ caller, params }) => {
    const items = await providers.listItems(caller, params.id)
    return {
      items: items.map(({ id, title, vault, urls }) => ({
        id,
        title,
        vault_id: vault.id,
        vault_name: vault.name,
        path: `${vault.name}/${title}`,
        urls: [...urls],
      })),
    }
  })
}

function record(provider: StoredProvider): CredentialProvider {
  return {
    id: provider.id,
    provider_type: provider.provider_type,
    name: provider.name,
    enabled: provider.enabled,
    priority: provider.priority,
    created_at: provider.created_at.toISOString(),
    updated_at: provider.updated_at.toISOString(),
  }
}
