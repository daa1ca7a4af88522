import type { ApiKey as ApiKeyAnswer } from '@berth/contract/api-keys/api-key.ts'
import type { ApiKey } from './api-key-store.ts'

/** Writes a key as callers see it. berth knows keys and no people, so that nobody has an address. */
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
