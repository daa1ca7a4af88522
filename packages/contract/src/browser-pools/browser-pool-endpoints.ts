import { z } from 'zod'
import { Browser, Region } from '../browsers/browser.ts'
import { IdOrName } from '../common/ids.ts'
import { PageQuery } from '../common/page.ts'
import { SearchText } from '../common/text.ts'
import { defineEndpoint } from '../endpoint.ts'
import {
  BrowserPool,
  BrowserPoolAcquireRequest,
  BrowserPoolCreateRequest,
  BrowserPoolReleaseRequest,
  BrowserPoolUpdateRequest,
} from './browser-pool.ts'

const tag = 'Browser Pools'
const OnePool = z.object({ id_or_name: IdOrName.meta({ description: 'Pool id or name.' }) })
const configErrors = [
  'pool_name_taken',
  'session_limit_reached',
  'field_not_supported',
  'proxy_not_found',
  'profile_not_found',
  'extension_not_found',
] as const

export const createBrowserPool = defineEndpoint({
  operationId: 'createBrowserPool',
  method: 'POST',
  path: '/browser_pools',
  summary: 'Create a browser pool',
  description: 'Responds immediately. The browsers are built afterwards.',
  tag,
  access: 'project',
  body: BrowserPoolCreateRequest,
  reply: BrowserPool,
  status: 201,
  errors: [...configErrors],
})

export const listBrowserPools = defineEndpoint({
  operationId: 'listBrowserPools',
  method: 'GET',
  path: '/browser_pools',
  summary: 'List browser pools',
  description: 'Newest first.',
  tag,
  access: 'project',
  query: PageQuery.extend({
    query: SearchText.optional().meta({ description: 'Text to find in the name, or a whole id.' }),
    name: SearchText.optional().meta({ description: 'The whole name. Case and accents are ignored.' }),
    region: Region.optional(),
  }),
  reply: z.array(BrowserPool),
  paged: true,
  status: 200,
  errors: [],
})

export const getBrowserPool = defineEndpoint({
  operationId: 'getBrowserPool',
  method: 'GET',
  path: '/browser_pools/{id_or_name}',
  summary: 'Get a browser pool',
  tag,
  access: 'project',
  params: OnePool,
  reply: BrowserPool,
  status: 200,
  errors: ['pool_not_found'],
})

export const updateBrowserPool = defineEndpoint({
  operationId: 'updateBrowserPool',
  method: 'PATCH',
  path: '/browser_pools/{id_or_name}',
  summary: 'Update a browser pool',
  description:
    'Absent fields stay unchanged. Browsers that exist keep their configuration, unless discard_all_idle is set. ' +
    'A smaller size removes ready browsers.',
  tag,
  access: 'project',
  params: OnePool,
  body: BrowserPoolUpdateRequest,
  reply: BrowserPool,
  status: 200,
  errors: ['pool_not_found', 'pool_changed_meanwhile', ...configErrors],
})

export const deleteBrowserPool = defineEndpoint({
  operationId: 'deleteBrowserPool',
  method: 'DELETE',
  path: '/browser_pools/{id_or_name}',
  summary: 'Delete a browser pool',
  description: 'Stops its browsers. Rejected while some are leased, unless force is set.',
  tag,
  access: 'project',
  params: OnePool,
  body: z.object({ force: z.boolean().default(false) }).prefault({}),
  status: 204,
  errors: ['pool_not_found', 'pool_has_leases'],
})

export const acquireBrowser = defineEndpoint({
  operationId: 'acquireBrowser',
  method: 'POST',
  path: '/browser_pools/{id_or_name}/acquire',
  summary: 'Lease a browser from a pool',
  description:
    'Waits until a browser is ready. Callers are served in the order of their requests. The browser returns to the ' +
    'pool if the caller disconnects before the response.',
  tag,
  access: 'project',
  params: OnePool,
  body: BrowserPoolAcquireRequest.prefault({}),
  reply: Browser,
  status: 200,
  otherSuccesses: { 204: 'No browser was ready in time; without a body.' },
  errors: ['pool_not_found', 'session_name_taken'],
})

export const releaseBrowser = defineEndpoint({
  operationId: 'releaseBrowser',
  method: 'POST',
  path: '/browser_pools/{id_or_name}/release',
  summary: 'Return a leased browser to its pool',
  description:
    'With reuse, the browser keeps its tabs, cookies and storage. The URLs of the session stop working, its connections ' +
    'are closed, and its name, tags, telemetry and proxy are reset to those of the pool.',
  tag,
  access: 'project',
  params: OnePool,
  body: BrowserPoolReleaseRequest,
  status: 204,
  errors: ['pool_not_found', 'session_not_leased'],
})

export const flushBrowserPool = defineEndpoint({
  operationId: 'flushBrowserPool',
  method: 'POST',
  path: '/browser_pools/{id_or_name}/flush',
  summary: 'Replace the ready browsers of a pool',
  description: 'Stops all ready browsers and builds new ones at the fill rate. Leased browsers are not affected.',
  tag,
  access: 'project',
  params: OnePool,
  status: 204,
  errors: ['pool_not_found'],
})
