import type { Clock } from '@berth/runtime/async/clock.ts'
import { newApiKey } from '../../access/secrets.ts'
import type { OrganizationStore } from './organization-store.ts'

/**
 * Ensures that there is an organization with a key: the first start creates the organization, its project and a key. A
 * configured key is used instead, also on later starts. Returns the key to show, because a generated key cannot be read
 * again.
 */
export async function ensureOrganization(
  organizations: OrganizationStore,
  clock: Clock,
  configuredKey: string | undefined,
): Promise<string | undefined> {
  const key = configuredKey ?? newApiKey()
  const isFirst = await organizations.createFirst(key, clock.now())
  if (configuredKey !== undefined && !isFirst) await organizations.admitKey(configuredKey, clock.now())
  return configuredKey ?? (isFirst ? key : undefined)
}
