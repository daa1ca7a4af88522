import { z } from 'zod'
import { PageQuery } from '../common/page.ts'
import { QueryBoolean } from '../common/query.ts'
import { SearchText } from '../common/text.ts'
import { TimeInput } from '../common/time.ts'
import { Unchangeable } from '../common/unsupported.ts'
import { defineEndpoint } from '../endpoint.ts'
import { ApiKey, ApiKeyName, CreatedApiKey, DaysToExpire, OverlapDays } from './api-key.ts'

const tag = 'API Keys'
const OneKey = z.object({ id: z.string().min(1).max(255).meta({ description: 'API key id.' }) })

export const createApiKey = defineEndpoint({
  operationId: 'createApiKey',
  method: 'POST',
  path: '/org/api_keys',
  summary: 'Create an API key',
  description: 'A key of one project can only create keys of that project, which is the default project_id for it.',
  tag,
  access: 'organization',
  body: z.object({
    name: ApiKeyName,
    days_to_expire: DaysToExpire.meta({ description: 'Absent or null: it never expires.' }),
    expires_at: TimeInput.nullish().meta({ description: 'The expiry as a time. Not together with days_to_expire.' }),
    project_id: z.string().min(1).max(255).nullish().meta({ description: 'Absent or null: for all projects.' }),
    policy: z.unknown().optional().meta({ description: 'Not supported: requests with it are rejected.' }),
  }),
  reply: CreatedApiKey,
  status: 201,
  errors: ['field_not_supported'],
})

export const listApiKeys = defineEndpoint({
  operationId: 'listApiKeys',
  method: 'GET',
  path: '/org/api_keys',
  summary: 'List API keys',
  description: 'A key of one project only sees the keys of that project.',
  tag,
  access: 'organization',
  query: PageQuery.extend({
    query: SearchText.optional().meta({
      description: 'Text to find in the name, the creator or the project; or an id or masked key, or its beginning.',
    }),
    name: SearchText.optional().meta({ description: 'The whole name. Case and accents are ignored.' }),
    sort_by: z.enum(['created_at', 'name', 'expires_at']).default('created_at'),
    sort_direction: z.enum(['asc', 'desc']).default('desc'),
    status: z.enum(['active', 'deleted', 'all']).optional().meta({ description: 'Default: active, expired included.' }),
    include_deleted: QueryBoolean.default(false).meta({ deprecated: true, description: 'Use status.' }),
  }),
  reply: z.array(ApiKey),
  paged: true,
  status: 200,
  errors: [],
})

export const getApiKey = defineEndpoint({
  operationId: 'getApiKey',
  method: 'GET',
  path: '/org/api_keys/{id}',
  summary: 'Get an API key',
  tag,
  access: 'organization',
  params: OneKey,
  query: z.object({ include_deleted: QueryBoolean.default(false) }),
  reply: ApiKey,
  status: 200,
  errors: ['api_key_not_found'],
})

export const updateApiKey = defineEndpoint({
  operationId: 'updateApiKey',
  method: 'PATCH',
  path: '/org/api_keys/{id}',
  summary: 'Rename an API key',
  tag,
  access: 'organization',
  params: OneKey,
  body: z.object({
    name: ApiKeyName,
    days_to_expire: Unchangeable,
    expires_at: Unchangeable,
    project_id: Unchangeable,
    policy: Unchangeable,
  }),
  reply: ApiKey,
  status: 200,
  errors: ['api_key_not_found'],
})

export const deleteApiKey = defineEndpoint({
  operationId: 'deleteApiKey',
  method: 'DELETE',
  path: '/org/api_keys/{id}',
  summary: 'Delete an API key',
  description:
    'The server that deletes it rejects it immediately, other servers within a second. A key cannot delete itself.',
  tag,
  access: 'organization',
  params: OneKey,
  status: 204,
  errors: ['api_key_not_found', 'invalid_input'],
})

export const rotateApiKey = defineEndpoint({
  operationId: 'rotateApiKey',
  method: 'POST',
  path: '/org/api_keys/{id}/rotate',
  summary: 'Replace an API key with a new one',
  description: 'The new key has the same name and project. The old one stays valid for some time.',
  tag,
  access: 'organization',
  params: OneKey,
  body: z
    .object({
      days_to_expire: DaysToExpire.meta({
        description:
          'Lifetime of the new key. Absent: the lifetime that the old key was created with. Null: it never expires.',
      }),
      expire_in_days: OverlapDays.meta({
        description:
          'How long the old key stays valid. 0: it expires immediately. Absent or null: 7 days, or the lifetime of the new key.',
      }),
    })
    .prefault({}),
  reply: CreatedApiKey,
  status: 201,
  errors: ['api_key_not_found'],
})
