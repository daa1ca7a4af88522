import { z } from 'zod'
import { PageQuery } from '../common/page.ts'
import { nameOf, SearchText } from '../common/text.ts'
import { Timestamp } from '../common/time.ts'
import { defineEndpoint } from '../endpoint.ts'

const tag = 'Credential Providers'
const maxTokenLength = 8192
const maxCacheSeconds = 24 * 60 * 60
const maxPriority = 1_000_000

const OneProvider = z.object({ id: z.string().min(1).max(255).meta({ description: 'Credential provider id.' }) })
const ProviderType = z.enum(['onepassword'])
const ProviderName = nameOf(255)
const CacheSeconds = z.int().min(0).max(maxCacheSeconds)

/** Restricted to characters that are valid in a header. */
const ProviderToken = z
  .string()
  .max(maxTokenLength)
  .transform((token) => token.trim())
  .refine((token) => /^[\x21-\x7e]+$/.test(token), { error: 'must be visible ASCII characters without spaces' })
  .meta({ override: { type: 'string', maxLength: maxTokenLength } })

export const CredentialProvider = z
  .strictObject({
    id: z.string(),
    provider_type: ProviderType,
    name: z.string(),
    enabled: z.boolean(),
    priority: z.int().meta({ description: 'Lower numbers are used first.' }),
    created_at: Timestamp,
    updated_at: Timestamp,
  })
  .meta({ id: 'CredentialProvider' })
export type CredentialProvider = z.infer<typeof CredentialProvider>

const ProviderVault = z.object({ id: z.string(), name: z.string() })

const CredentialProviderItem = z
  .strictObject({
    id: z.string(),
    title: z.string(),
    vault_id: z.string(),
    vault_name: z.string(),
    path: z.string().meta({ description: '`VaultName/ItemTitle`.' }),
    urls: z.array(z.string()).optional(),
  })
  .meta({ id: 'CredentialProviderItem' })

export const CredentialProviderCreateRequest = z.strictObject({
  provider_type: ProviderType,
  name: ProviderName,
  token: ProviderToken.meta({ description: 'Write-only. A token of the Connect server.' }),
  cache_ttl_seconds: CacheSeconds.default(300).meta({ description: 'How long the list of items is cached.' }),
})
export type CredentialProviderCreateRequest = z.output<typeof CredentialProviderCreateRequest>

export const CredentialProviderUpdateRequest = z.strictObject({
  name: ProviderName.optional(),
  enabled: z.boolean().optional(),
  priority: z.int().min(-maxPriority).max(maxPriority).optional(),
  token: ProviderToken.optional(),
  cache_ttl_seconds: CacheSeconds.optional(),
})
export type CredentialProviderUpdateRequest = z.output<typeof CredentialProviderUpdateRequest>

export const createCredentialProvider = defineEndpoint({
  operationId: 'createCredentialProvider',
  method: 'POST',
  path: '/org/credential_providers',
  summary: 'Create a credential provider',
  description: 'Does not connect to the provider; use the test for that.',
  tag,
  access: 'organization',
  body: CredentialProviderCreateRequest,
  reply: CredentialProvider,
  status: 201,
  errors: ['credential_provider_name_taken'],
})

export const listCredentialProviders = defineEndpoint({
  operationId: 'listCredentialProviders',
  method: 'GET',
  path: '/org/credential_providers',
  summary: 'List credential providers',
  description: 'Newest first.',
  tag,
  access: 'organization',
  query: PageQuery.extend({
    query: SearchText.optional().meta({ description: 'Text to find in the name, or a whole id.' }),
  }),
  reply: z.array(CredentialProvider),
  paged: true,
  status: 200,
  errors: [],
})

export const getCredentialProvider = defineEndpoint({
  operationId: 'getCredentialProvider',
  method: 'GET',
  path: '/org/credential_providers/{id}',
  summary: 'Get a credential provider',
  tag,
  access: 'organization',
  params: OneProvider,
  reply: CredentialProvider,
  status: 200,
  errors: ['credential_provider_not_found'],
})

export const updateCredentialProvider = defineEndpoint({
  operationId: 'updateCredentialProvider',
  method: 'PATCH',
  path: '/org/credential_providers/{id}',
  summary: 'Change a credential provider',
  tag,
  access: 'organization',
  params: OneProvider,
  body: CredentialProviderUpdateRequest,
  reply: CredentialProvider,
  status: 200,
  errors: ['credential_provider_not_found', 'credential_provider_name_taken'],
})

export const deleteCredentialProvider = defineEndpoint({
  operationId: 'deleteCredentialProvider',
  method: 'DELETE',
  path: '/org/credential_providers/{id}',
  summary: 'Delete a credential provider',
  description:
    'Also deletes its token and the cached list of items, even for a call in progress. The items themselves stay at ' +
    'the provider.',
  tag,
  access: 'organization',
  params: OneProvider,
  status: 204,
  errors: ['credential_provider_not_found'],
})

export const testCredentialProvider = defineEndpoint({
  operationId: 'testCredentialProvider',
  method: 'POST',
  path: '/org/credential_providers/{id}/test',
  summary: 'Test a credential provider',
  description: 'For a provider that does not work, the response is 200 with `success` false and an `error`.',
  tag,
  access: 'organization',
  params: OneProvider,
  reply: z
    .strictObject({ success: z.boolean(), vaults: z.array(ProviderVault), error: z.string().optional() })
    .meta({ id: 'CredentialProviderTestResult' }),
  status: 200,
  errors: ['credential_provider_not_found'],
})

export const listCredentialProviderItems = defineEndpoint({
  operationId: 'listCredentialProviderItems',
  method: 'GET',
  path: '/org/credential_providers/{id}/items',
  summary: 'List the items of a credential provider',
  description: 'Returns titles and addresses, no values.',
  tag,
  access: 'organization',
  params: OneProvider,
  reply: z.object({ items: z.array(CredentialProviderItem) }),
  status: 200,
  errors: ['credential_provider_not_found', 'credential_provider_failed'],
})
