import type { ProjectId } from '@berth/contract/common/ids.ts'
import {
  checkProxy,
  createProxy,
  deleteProxy,
  getProxy,
  listProxies,
  updateProxy,
} from '@berth/contract/proxies/proxy-endpoints.ts'
import type { MountForCallers } from '../../access/mount-for-callers.ts'
import { writeProxy } from './proxy-record.ts'
import type { ProxyService } from './proxy-service.ts'

interface ProxyRoutesOptions {
  readonly proxies: ProxyService
  /** Deletes a proxy and updates the sessions that use it. */
  readonly deletedProxies: { delete(projectId: ProjectId, idOrName: string): Promise<void> }
}

export function mountProxyRoutes(mount: MountForCallers, { proxies, deletedProxies }: ProxyRoutesOptions): void {
  mount(createProxy, async ({ caller, body }) => writeProxy(await proxies.create(caller.projectId, body)))

  mount(listProxies, async ({ caller, query }) => {
    const page = await proxies.list({ projectId: caller.projectId, text: query.query, name: query.name }, query)
    return { items: page.items.map(writeProxy), hasMore: page.hasMore }
  })

  mount(getProxy, async ({ caller, params }) => writeProxy(await proxies.get(caller.projectId, params.id_or_name)))

  mount(updateProxy, async ({ caller, params, body }) =>
    writeProxy(await proxies.rename(caller.projectId, params.id_or_name, body.name)),
  )

  mount(deleteProxy, ({ caller, params }) => deletedProxies.delete(caller.projectId, params.id_or_name))

  mount(checkProxy, async ({ caller, params, body }) => {
    const { proxy, latencyMilliseconds } = await proxies.check(caller.projectId, params.id_or_name, body.url)
    return { ...writeProxy(proxy), ...(latencyMilliseconds !== undefined && { latency_ms: latencyMilliseconds }) }
  })
}
