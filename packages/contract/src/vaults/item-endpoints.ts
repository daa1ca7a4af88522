import { z } from 'zod'
import { defineEndpoint } from '../endpoint.ts'
import { VaultItemOperation, VaultItemOperationResult } from './item-operation.ts'
import { VaultItemKey } from './vault.ts'
import { OneVault } from './vault-endpoints.ts'
import { VaultItem, VaultItemEvent, VaultItemRequest, VaultItemUpdateRequest } from './vault-item.ts'

const tag = 'Vault Items'
const bodyLimitBytes = 128 * 1024
const maxWaitSeconds = 60

const OneItem = OneVault.extend({ key: VaultItemKey })

const WaitSeconds = z
  .string()
  .regex(/^\d{1,2}$/, { error: `must be a whole number from 0 to ${maxWaitSeconds}` })
  .transform(Number)
  .refine((seconds) => seconds <= maxWaitSeconds, { error: `must be a whole number from 0 to ${maxWaitSeconds}` })
  .default(0)
  .meta({ override: { type: 'integer', minimum: 0, maximum: maxWaitSeconds, default: 0 } })

const Expansion = z.enum(['payment_methods', 'link_user_info', 'link_shipping_addresses'])

export const upsertVaultItem = defineEndpoint({
  operationId: 'upsertVaultItem',
  method: 'PUT',
  path: '/vaults/{id_or_name}/items/{key}',
  summary: 'Create an item, or get the one that was created the same way',
  tag,
  access: 'project',
  params: OneItem,
  body: VaultItemRequest,
  bodyLimitBytes,
  reply: VaultItem,
  status: 200,
  errors: [
    'auth_connection_not_found',
    'auth_connection_not_usable',
    'vault_not_found',
    'vault_item_exists',
    'vault_full',
    'insufficient_plan',
    'field_not_supported',
    'invalid_request',
    'encryption_key_mismatch',
  ],
})

export const listVaultItems = defineEndpoint({
  operationId: 'listVaultItems',
  method: 'GET',
  path: '/vaults/{id_or_name}/items',
  summary: 'List the items of a vault',
  description: 'All of them, newest first.',
  tag,
  access: 'project',
  params: OneVault,
  reply: z.array(VaultItem),
  status: 200,
  errors: ['vault_not_found'],
})

export const getVaultItem = defineEndpoint({
  operationId: 'getVaultItem',
  method: 'GET',
  path: '/vaults/{id_or_name}/items/{key}',
  summary: 'Get an item',
  description: 'Renews the link of an item whose values are not collected yet.',
  tag,
  access: 'project',
  params: OneItem,
  query: z.object({
    expand: z.union([Expansion.transform((one) => [one]), z.array(Expansion)]).optional(),
    wait: WaitSeconds.meta({ description: 'Seconds to wait for a change of the item.' }),
  }),
  reply: VaultItem,
  status: 200,
  errors: ['vault_not_found', 'vault_item_not_found', 'expansion_not_available'],
})

export const updateVaultItem = defineEndpoint({
  operationId: 'updateVaultItem',
  method: 'PATCH',
  path: '/vaults/{id_or_name}/items/{key}',
  summary: 'Change the values of an item',
  tag,
  access: 'project',
  params: OneItem,
  body: VaultItemUpdateRequest,
  bodyLimitBytes,
  reply: VaultItem,
  status: 200,
  errors: [
    'vault_not_found',
    'vault_item_not_found',
    'vault_item_changed',
    'invalid_request',
    'encryption_key_mismatch',
  ],
})

export const deleteVaultItem = defineEndpoint({
  operationId: 'deleteVaultItem',
  method: 'DELETE',
  path: '/vaults/{id_or_name}/items/{key}',
  summary: 'Delete an item',
  tag,
  access: 'project',
  params: OneItem,
  status: 204,
  errors: ['vault_not_found', 'vault_item_not_found'],
})

export const listVaultItemEvents = defineEndpoint({
  operationId: 'listVaultItemEvents',
  method: 'GET',
  path: '/vaults/{id_or_name}/items/{key}/events',
  summary: 'List the events of an item',
  description: 'Oldest first.',
  tag,
  access: 'project',
  params: OneItem,
  query: z.object({
    after: z.string().min(1).max(255).optional().meta({ description: 'Only events after this one.' }),
    wait: WaitSeconds.meta({ description: 'Seconds to wait for an event when there is none.' }),
  }),
  reply: z.array(VaultItemEvent),
  status: 200,
  errors: ['vault_not_found', 'vault_item_not_found', 'vault_event_not_found'],
})

export const performVaultItemOperation = defineEndpoint({
  operationId: 'performVaultItemOperation',
  method: 'POST',
  path: '/vaults/{id_or_name}/items/{key}/operations',
  summary: 'Use an item: collect its values, or fill them into a page',
  tag,
  access: 'project',
  params: OneItem,
  body: VaultItemOperation,
  sessionField: ['browser_id'],
  bodyLimitBytes,
  reply: VaultItemOperationResult,
  status: 200,
  errors: [
    'vault_not_found',
    'vault_item_not_found',
    'vault_operation_not_available',
    'vault_not_linked',
    'vault_fill_under_way',
    'fill_page_not_found',
    'ambiguous_page',
    'field_unavailable',
    'destination_denied',
    'session_not_found',
    'session_unreachable',
    'tool_not_found',
    'page_not_answering',
  ],
})
