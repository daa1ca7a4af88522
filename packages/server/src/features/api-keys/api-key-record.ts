import type { ApiKey as ApiKeyAnswer } from '@berth/contract/api-keys/api-key.ts'
import type { ApiKey } from './api-key-store.ts'

/** Formats a key for callers. berth has keys but no users, so there is no e-mail address. */
export function apiKeyRecord(key: ApiKey): ApiKeyAnswer {
  return {
    id: key.id,
    name: key.name,
    created_at: key.created_at.toISOString(),
    created_by: { id: key.created_by_id, email: '', name: key.created_by_name },
    expires_at: key.expires_at?.toISOString() ?? null,
    deleted_at: key.deleted_at?.toISOString() ?? null,
    project_id: key.project_id,
    project_name: key.project_name,
    masked_key: key.masked_key,
  }
}
