import type { BrowserPool } from '@berth/contract/browser-pools/browser-pool.ts'
import type { Region } from '@berth/contract/browsers/browser.ts'
import type { CountedPool } from './pool-store.ts'

/** The form of a pool that callers see. */
export function poolRecord(pool: CountedPool, region: Region): BrowserPool {
  const { profile, ...config } = pool.config
  return {
    id: pool.id,
    ...(pool.name !== null && { name: pool.name }),
    available_count: pool.available,
    acquired_count: pool.acquired,
    created_at: pool.created_at.toISOString(),
    browser_pool_config: {
      ...config,
      size: pool.size,
      ...(pool.name !== null && { name: pool.name }),
      fill_rate_per_minute: pool.fill_rate_per_minute,
      // A deleted profile is not used any more.
      ...(profile && pool.profile_id && { profile }),
      refresh_on_profile_update: pool.refresh_on_profile_update && pool.profile_id !== null,
    },
    extension_ids: [...pool.extension_ids],
    ...(pool.profile_id && { profile_id: pool.profile_id }),
    region,
  }
}
