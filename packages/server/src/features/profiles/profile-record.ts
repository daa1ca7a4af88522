import type { Profile as ProfileRecord } from '@berth/contract/profiles/profile.ts'
import type { Profile } from './profile-store.ts'

/** The form of a profile that callers see. */
export function profileRecord({ id, name, created_at, updated_at, last_used_at }: Profile): ProfileRecord {
  return {
    id,
    name,
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
    ...(last_used_at && { last_used_at: last_used_at.toISOString() }),
  }
}
