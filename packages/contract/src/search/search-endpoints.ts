import { z } from 'zod'
import { defineEndpoint } from '../endpoint.ts'
import { ProviderSlugs } from './provider-options.ts'
import { Search, SearchContents, SearchProvider } from './search.ts'
import { ContentsRequest, SearchRequest } from './search-request.ts'

const tag = 'Search'
const OneSearch = z.object({ id: z.string().min(1).max(255) })

export const createSearch = defineEndpoint({
  operationId: 'createSearch',
  method: 'POST',
  path: '/search',
  summary: 'Search the web',
  description: 'Uses the search services that the operator has configured. Results are stored for 24 hours.',
  tag,
  access: 'project',
  isRateLimited: true,
  body: SearchRequest,
  sessionField: ['content', 'browser', 'browser_id'],
  reply: Search,
  status: 200,
  errors: ['search_failed', 'search_params_not_servable', 'session_not_found'],
})

export const listSearchProviders = defineEndpoint({
  operationId: 'listSearchProviders',
  method: 'GET',
  path: '/search/providers',
  summary: 'List the configured search services',
  tag,
  access: 'project',
  query: z.object({ slug: ProviderSlugs.optional() }),
  reply: z.array(SearchProvider),
  status: 200,
  errors: [],
})

export const getSearch = defineEndpoint({
  operationId: 'getSearch',
  method: 'GET',
  path: '/search/{id}',
  summary: 'Get a search as it was first answered',
  tag,
  access: 'project',
  params: OneSearch,
  reply: Search,
  status: 200,
  errors: ['search_not_found'],
})

export const fetchSearchContents = defineEndpoint({
  operationId: 'fetchSearchContents',
  method: 'POST',
  path: '/search/{id}/contents',
  summary: 'Fetch the contents of results',
  description: 'A failed page is reported in its result. The other results are not affected.',
  tag,
  access: 'project',
  isRateLimited: true,
  params: OneSearch,
  body: ContentsRequest.optional(),
  sessionField: ['content', 'browser', 'browser_id'],
  reply: SearchContents,
  status: 200,
  errors: ['search_not_found', 'session_not_found'],
})
