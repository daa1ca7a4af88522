import {
  createSearch,
  fetchSearchContents,
  getSearch,
  listSearchProviders,
} from '@berth/contract/search/search-endpoints.ts'
import type { MountForCallers } from '../../access/mount-for-callers.ts'
import { providerRecord } from './provider-record.ts'
import type { SearchConfig } from './providers/known-providers.ts'
import type { SearchService } from './search-service.ts'

interface SearchRoutesOptions {
  readonly searches: SearchService
  readonly searchConfig: SearchConfig
}

export function mountSearchRoutes(mount: MountForCallers, { searches, searchConfig }: SearchRoutesOptions): void {
  mount(createSearch, ({ caller, body, signal }) => searches.create(caller.projectId, body, signal))

  mount(listSearchProviders, ({ query }) =>
    searchConfig.providers
      .map(({ provider }) => providerRecord(provider))
      .filter(({ slug }) => query.slug === undefined || slug === query.slug),
  )

  mount(getSearch, ({ caller, params }) => searches.get(caller.projectId, params.id))

  mount(fetchSearchContents, ({ caller, params, body, signal }) =>
    searches.fetchContents(caller.projectId, params.id, body ?? {}, signal),
  )
}
