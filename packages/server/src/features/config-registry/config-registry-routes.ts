import {
  cancelAnalysis,
  getAnalysis,
  listAnalyses,
  listRecommendations,
  lookUpConfiguration,
  resolveConfiguration,
} from '@berth/contract/config-registry/config-registry-endpoints.ts'
import type { MountForCallers } from '../../access/mount-for-callers.ts'
import { analysisSummary, lookupResponse, recommendationSummary, registryResponse } from './config-registry-record.ts'
import type { ConfigRegistryService } from './config-registry-service.ts'

export function mountConfigRegistryRoutes(
  mount: MountForCallers,
  { configRegistry }: { readonly configRegistry: ConfigRegistryService },
): void {
  mount(listRecommendations, async ({ caller, query }) => {
    const filter = { search: query.search, sortBy: query.sort_by, order: query.sort_order }
    const page = await configRegistry.listSummaries(caller.projectId, filter, query)
    return { items: page.items.map(recommendationSummary), hasMore: page.hasMore }
  })

  mount(lookUpConfiguration, async ({ caller, body }) =>
    lookupResponse(
      await configRegistry.lookUp({
        projectId: caller.projectId,
        url: body.url,
        allowedProxyCountries: body.allowed_proxy_countries ?? null,
      }),
    ),
  )

  mount(resolveConfiguration, async ({ caller, body }) =>
    registryResponse(
      await configRegistry.resolve({
        projectId: caller.projectId,
        url: body.url,
        allowedProxyCountries: body.allowed_proxy_countries ?? null,
        intent: body.intent ?? null,
      }),
    ),
  )

  mount(listAnalyses, async ({ caller, query }) => {
    const page = await configRegistry.list(caller.projectId, query.search, query)
    return { items: page.items.map(analysisSummary), hasMore: page.hasMore }
  })

  mount(getAnalysis, async ({ caller, params }) =>
    registryResponse(await configRegistry.get(caller.projectId, params.id)),
  )

  mount(cancelAnalysis, async ({ caller, params }) =>
    registryResponse(await configRegistry.cancel(caller.projectId, params.id)),
  )
}
