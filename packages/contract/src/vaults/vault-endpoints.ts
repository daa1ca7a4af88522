import { z } from 'zod'
import { PageQuery } from '../common/page.ts'
import { SearchText } from '../common/text.ts'
import { defineEndpoint } from '../endpoint.ts'
import { Vault, VaultEncryptionKey, VaultName } from './vault.ts'

const tag = 'Vaults'

export const OneVault = z.object({
  id_or_name: z.string().min(1).max(255).meta({ description: 'Vault id or name.' }),
})

export const upsertVault = defineEndpoint({
  operationId: 'upsertVault',
  method: 'POST',
  path: '/vaults',
  summary: 'Create a vault, or get the one with this name',
  tag,
  access: 'project',
  body: z.strictObject({ name: VaultName }),
  reply: Vault,
  status: 201,
  otherSuccesses: { 200: 'The vault already existed.' },
  errors: [],
})

export const listVaults = defineEndpoint({
  operationId: 'listVaults',
  method: 'GET',
  path: '/vaults',
  summary: 'List vaults',
  description: 'Newest first.',
  tag,
  access: 'project',
  query: PageQuery.extend({
    query: SearchText.optional().meta({ description: 'Text to find in the name, or a whole id.' }),
  }),
  reply: z.array(Vault),
  paged: true,
  status: 200,
  errors: [],
})

export const getVault = defineEndpoint({
  operationId: 'getVault',
  method: 'GET',
  path: '/vaults/{id_or_name}',
  summary: 'Get a vault',
  tag,
  access: 'project',
  params: OneVault,
  reply: Vault,
  status: 200,
  errors: ['vault_not_found'],
})

export const deleteVault = defineEndpoint({
  operationId: 'deleteVault',
  method: 'DELETE',
  path: '/vaults/{id_or_name}',
  summary: 'Delete a vault with its items',
  tag,
  access: 'project',
  params: OneVault,
  status: 204,
  errors: ['vault_not_found'],
})

export const getVaultEncryptionKey = defineEndpoint({
  operationId: 'getVaultEncryptionKey',
  method: 'GET',
  path: '/vaults/{id_or_name}/encryption_key',
  summary: 'Get the key for encrypted values',
  description: 'Created by the first request. It never changes.',
  tag,
  access: 'project',
  params: OneVault,
  reply: VaultEncryptionKey,
  status: 200,
  errors: ['vault_not_found'],
})
