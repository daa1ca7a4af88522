import type { Clock } from '@berth/runtime/async/clock.ts'
import { newApiKey } from '../../access/secrets.ts'
import type { OrganizationStore } from './organization-store.ts'

/**
 * Makes sure that there is somebody to call: the first start makes the organization, its project and a key. With a
 * configured key that one is used, on later starts too. Returns the key to show: a made one is never seen again.
 */
export async function ensureOrganization(
  organizations: OrganizationStore,
  clock: Clock,
  configuredKey: string | undefined,
): Promise<string | undefined> {
  const key = configuredKey ?? newApiKey()
  const isFirst = await organizations.makeFirst(key, clock.now())
  if (configuredKey !== undefined && !isFirst) await organizations.admitKey(configuredKey, clock.now())
  return configuredKey ?? (isFirst ? key : undefined)
}
