import {
  acquireBrowser,
  createBrowserPool,
  deleteBrowserPool,
  flushBrowserPool,
  getBrowserPool,
  listBrowserPools,
  releaseBrowser,
  updateBrowserPool,
} from '@berth/contract/browser-pools/browser-pool-endpoints.ts'
import type { Region } from '@berth/contract/browsers/browser.ts'
import type { MountForCallers } from '../../../access/mount-for-callers.ts'
import { publicUrlOf } from '../../../access/public-url.ts'
import type { SessionRecords } from '../records/session-record.ts'
import type { LeaseService } from './lease-service.ts'
import { poolRecord } from './pool-record.ts'
import type { PoolService } from './pool-service.ts'

interface PoolRoutesOptions {
  readonly pools: PoolService
  readonly leases: LeaseService
  readonly records: SessionRecords
  readonly region: Region
  readonly publicUrl: string | undefined
}

export function mountPoolRoutes(
  mount: MountForCallers,
  { pools, leases, records, region, publicUrl }: PoolRoutesOptions,
): void {
  mount(createBrowserPool, async ({ caller, body }) => poolRecord(await pools.create(caller.projectId, body), region))

  mount(listBrowserPools, async ({ caller, query }) => {
    if (query.region && query.region !== region) return { items: [], hasMore: false }
    const filter = { projectId: caller.projectId, text: query.query, name: query.name }
    const page = await pools.list(filter, query)
    return { items: page.items.map((pool) => poolRecord(pool, region)), hasMore: page.hasMore }
  })

  mount(getBrowserPool, async ({ caller, params }) =>
    poolRecord(await pools.get(caller.projectId, params.id_or_name), region),
  )

  mount(updateBrowserPool, async ({ caller, params, body }) =>
    poolRecord(await pools.update(caller.projectId, params.id_or_name, body), region),
  )

  mount(deleteBrowserPool, ({ caller, params, body }) => pools.delete(caller.projectId, params.id_or_name, body.force))

  mount(acquireBrowser, async ({ caller, params, body, request, signal }) => {
    const asked = { projectId: caller.projectId, idOrName: params.id_or_name, request: body, signal }
    const session = await leases.acquire(asked)
    return session && records.write(session, publicUrlOf(request.raw, publicUrl))
  })

  mount(releaseBrowser, ({ caller, params, body }) =>
    leases.release({
      projectId: caller.projectId,
      idOrName: params.id_or_name,
      sessionId: body.session_id,
      reuse: body.reuse,
    }),
  )

  mount(flushBrowserPool, ({ caller, params }) => pools.flush(caller.projectId, params.id_or_name))
}
