import { z } from 'zod'
import { PageQuery } from '../common/page.ts'
import { nameOf } from '../common/text.ts'
import { Timestamp } from '../common/time.ts'
import { defineEndpoint } from '../endpoint.ts'

const tag = 'Vault Provider Configs'

const OneConfig = z.object({
  id_or_name: z.string().min(1).max(255).meta({ description: 'Config id or name. Ids are looked up first.' }),
})

const ConfigName = nameOf(255)
const Credential = z.string().min(1).max(4096)

const facts = {
  id: z.string(),
  name: z.string(),
  client_id: z.string(),
  created_at: Timestamp,
  updated_at: Timestamp,
}

export const VaultProviderConfig = z
  .discriminatedUnion('provider', [
    z.object({ ...facts, provider: z.literal('link'), publishable_key: z.string().optional() }),
    z.object({ ...facts, provider: z.literal('agentcard'), test_mode: z.boolean() }),
  ])
  .meta({ id: 'VaultProviderConfig' })
export type VaultProviderConfig = z.infer<typeof VaultProviderConfig>

const ClientCredentials = z.strictObject({
  client_id: Credential,
  client_secret: Credential.meta({ description: 'Write-only.' }),
})

export const VaultProviderConfigCreateRequest = z
  .discriminatedUnion('provider', [
    z.strictObject({
      provider: z.literal('link'),
      name: ConfigName,
      credentials: ClientCredentials.extend({ publishable_key: Credential.optional() }),
    }),
    z.strictObject({ provider: z.literal('agentcard'), name: ConfigName, credentials: ClientCredentials }),
  ])
  .meta({ id: 'VaultProviderConfigCreateRequest' })
export type VaultProviderConfigCreateRequest = z.output<typeof VaultProviderConfigCreateRequest>

export const VaultProviderConfigUpdateRequest = z
  .strictObject({
    name: ConfigName.optional(),
    credentials: z
      .strictObject({ client_secret: Credential.optional(), publishable_key: Credential.optional() })
      .optional(),
  })
  .meta({ id: 'VaultProviderConfigUpdateRequest' })
export type VaultProviderConfigUpdateRequest = z.output<typeof VaultProviderConfigUpdateRequest>

export const createVaultProviderConfig = defineEndpoint({
  operationId: 'createVaultProviderConfig',
  method: 'POST',
  path: '/vault-provider-configs',
  summary: 'Create a config of a payment provider',
  description: 'Stored for wallets and cards, which this version of berth does not have.',
  tag,
  access: 'organization',
  body: VaultProviderConfigCreateRequest,
  reply: VaultProviderConfig,
  status: 201,
  errors: ['vault_provider_config_name_taken'],
})

export const listVaultProviderConfigs = defineEndpoint({
  operationId: 'listVaultProviderConfigs',
  method: 'GET',
  path: '/vault-provider-configs',
  summary: 'List configs of payment providers',
  description: 'Newest first.',
  tag,
  access: 'organization',
  query: PageQuery,
  reply: z.array(VaultProviderConfig),
  paged: true,
  status: 200,
  errors: [],
})

export const getVaultProviderConfig = defineEndpoint({
  operationId: 'getVaultProviderConfig',
  method: 'GET',
  path: '/vault-provider-configs/{id_or_name}',
  summary: 'Get a config of a payment provider',
  tag,
  access: 'organization',
  params: OneConfig,
  reply: VaultProviderConfig,
  status: 200,
  errors: ['vault_provider_config_not_found'],
})

export const updateVaultProviderConfig = defineEndpoint({
  operationId: 'updateVaultProviderConfig',
  method: 'PATCH',
  path: '/vault-provider-configs/{id_or_name}',
  summary: 'Change a config of a payment provider',
  tag,
  access: 'organization',
  params: OneConfig,
  body: VaultProviderConfigUpdateRequest,
  reply: VaultProviderConfig,
  status: 200,
  errors: ['vault_provider_config_not_found', 'vault_provider_config_name_taken'],
})

export const deleteVaultProviderConfig = defineEndpoint({
  operationId: 'deleteVaultProviderConfig',
  method: 'DELETE',
  path: '/vault-provider-configs/{id_or_name}',
  summary: 'Delete a config of a payment provider',
  tag,
  access: 'organization',
  params: OneConfig,
  status: 204,
  errors: ['vault_provider_config_not_found'],
})
