import {
  createApiKey,
  deleteApiKey,
  getApiKey,
  listApiKeys,
  rotateApiKey,
  updateApiKey,
} from '@berth/contract/api-keys/api-key-endpoints.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { MountForOrganizations } from '../../access/mount-for-callers.ts'
import { apiKeyRecord } from './api-key-record.ts'
import type { ApiKeyService, IssuedApiKey } from './api-key-service.ts'

export function mountApiKeyRoutes(
  mount: MountForOrganizations,
  { apiKeys }: { readonly apiKeys: ApiKeyService },
): void {
  const withKey = ({ record, key }: IssuedApiKey) => ({ ...apiKeyRecord(record), key })

  mount(createApiKey, async ({ caller, body }) => {
    if (body.policy !== undefined && body.policy !== null) {
      throw new BerthError('field_not_supported', {
        field: 'policy',
        reason: 'this service does not support policies of keys.',
      })
    }
    const { name, days_to_expire: daysToExpire, expires_at: expiresAt, project_id: projectId } = body
    return withKey(await apiKeys.create(caller, { name, daysToExpire, expiresAt, projectId }))
  })

  mount(listApiKeys, async ({ caller, query }) => {
    const status = query.status ?? (query.include_deleted ? 'all' : 'active')
    const { query: text, name, sort_by: sortBy, sort_direction: direction } = query
    const page = await apiKeys.list(caller, { text, name, status, sortBy, direction }, query)
    return { items: page.items.map(apiKeyRecord), hasMore: page.hasMore }
  })

  mount(getApiKey, async ({ caller, params, query }) =>
    apiKeyRecord(await apiKeys.get(caller, params.id, query.include_deleted)),
  )

  mount(updateApiKey, async ({ caller, params, body }) =>
    apiKeyRecord(await apiKeys.rename(caller, params.id, body.name)),
  )

  mount(deleteApiKey, ({ caller, params }) => apiKeys.delete(caller, params.id))

  mount(rotateApiKey, async ({ caller, params, body }) =>
    withKey(
      await apiKeys.rotate(caller, params.id, { daysToExpire: body.days_to_expire, overlapDays: body.expire_in_days }),
    ),
  )
}
