import type { VaultProviderConfig } from '@berth/contract/vaults/provider-config-endpoints.ts'
import type { StoredProviderConfig } from './provider-config-store.ts'

export function providerConfigRecord(config: StoredProviderConfig): VaultProviderConfig {
  const { id, name, client_id, provider, publishable_key } = config
  const facts = {
    ...{ id, name, client_id },
    created_at: config.created_at.toISOString(),
    updated_at: config.updated_at.toISOString(),
  }
  if (provider === 'link') return { ...facts, provider, ...(publishable_key !== null && { publishable_key }) }
  return { ...facts, provider, test_mode: isTestClient(client_id) }
}

/** The provider's naming convention for clients of its test environment. */
function isTestClient(clientId: string): boolean {
  return /(^|[_-])(test|sandbox)([_-]|$)/.test(clientId)
}
