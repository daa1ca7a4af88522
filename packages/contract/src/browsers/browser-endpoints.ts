import { z } from 'zod'
import { IdOrName } from '../common/ids.ts'
import { PageQuery } from '../common/page.ts'
import { QueryBoolean } from '../common/query.ts'
import { defineEndpoint } from '../endpoint.ts'
import { Browser, BrowserRequest, Region } from './browser.ts'
import { BrowserUpdateRequest } from './browser-update.ts'

const tag = 'Browsers'
const OneBrowser = z.object({ id_or_name: IdOrName })

export const createBrowser = defineEndpoint({
  operationId: 'createBrowser',
  method: 'POST',
  path: '/browsers',
  summary: 'Create a browser session',
  description: 'Responds when the first page of the browser is ready. The body is optional.',
  tag,
  access: 'project',
  isRateLimited: true,
  body: BrowserRequest.prefault({}),
  reply: Browser,
  status: 200,
  errors: [
    'session_limit_reached',
    'field_not_supported',
    'proxy_not_found',
    'session_name_taken',
    'profile_not_found',
    'profile_not_loadable',
    'extension_not_found',
    'extension_not_loadable',
    'vault_not_found',
    'otlp_destination_not_found',
    'invocation_not_found',
    'invocation_finished',
    'session_ended_while_starting',
    'session_start_failed',
    'egress_unavailable',
    'capacity_exhausted',
  ],
})

export const listBrowsers = defineEndpoint({
  operationId: 'listBrowsers',
  method: 'GET',
  path: '/browsers',
  summary: 'List browser sessions',
  description: 'Newest first.',
  tag,
  access: 'project',
  query: PageQuery.extend({
    status: z.enum(['active', 'deleted', 'all']).optional().meta({ description: 'Default: active.' }),
    include_deleted: QueryBoolean.default(false).meta({ deprecated: true, description: 'Use status=all.' }),
    query: z.string().max(1024).optional().meta({
      description:
        'Text to find in the id or name of the session or its profile, in the id of its proxy or the name of its pool.',
    }),
    tags: z.record(z.string(), z.string()).optional().meta({ description: 'Pairs that must all be present.' }),
    region: Region.optional(),
  }),
  reply: z.array(Browser),
  paged: true,
  status: 200,
  errors: [],
})

export const getBrowser = defineEndpoint({
  operationId: 'getBrowser',
  method: 'GET',
  path: '/browsers/{id_or_name}',
  summary: 'Get a browser session',
  tag,
  access: 'project',
  params: OneBrowser,
  query: z.object({ include_deleted: QueryBoolean.default(false) }),
  reply: Browser,
  status: 200,
  errors: ['session_not_found'],
})

export const updateBrowser = defineEndpoint({
  operationId: 'updateBrowser',
  method: 'PATCH',
  path: '/browsers/{id_or_name}',
  summary: 'Update a browser session',
  description: 'An update is applied completely or not at all. Absent fields stay unchanged.',
  tag,
  access: 'project',
  params: OneBrowser,
  body: BrowserUpdateRequest,
  reply: Browser,
  status: 200,
  errors: [
    'session_not_found',
    'session_name_taken',
    'profile_not_found',
    'profile_already_loaded',
    'profile_not_loadable',
    'field_not_supported',
    'proxy_not_found',
    'session_update_failed',
    'viewport_in_use',
    'session_unreachable',
    'operation_interrupted',
    'egress_unavailable',
  ],
})

export const deleteBrowser = defineEndpoint({
  operationId: 'deleteBrowser',
  method: 'DELETE',
  path: '/browsers/{id_or_name}',
  summary: 'Delete a browser session',
  description:
    'Responds when the browser has stopped and its profile is saved. The record stays readable with include_deleted.',
  tag,
  access: 'project',
  params: OneBrowser,
  status: 204,
  errors: ['session_not_found', 'session_unreachable'],
})
