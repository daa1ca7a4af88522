import { z } from 'zod'
import { PageQuery } from '../common/page.ts'
import { defineEndpoint } from '../endpoint.ts'
import { CheckedProxy, ProxyCreateRequest, ProxyRecord, ProxyUpdateRequest } from './proxy.ts'

const tag = 'Proxies'
const OneProxy = z.object({
  id_or_name: z.string().min(1).max(255).meta({ description: 'Proxy id, or the name of exactly one active proxy.' }),
})

export const createProxy = defineEndpoint({
  operationId: 'createProxy',
  method: 'POST',
  path: '/proxies',
  summary: 'Create a proxy',
  description: 'Does not connect to the proxy; use the check for that.',
  tag,
  access: 'project',
  body: ProxyCreateRequest,
  reply: ProxyRecord,
  status: 201,
  errors: ['field_not_supported'],
})

export const listProxies = defineEndpoint({
  operationId: 'listProxies',
  method: 'GET',
  path: '/proxies',
  summary: 'List proxies',
  description: 'Newest first.',
  tag,
  access: 'project',
  query: PageQuery.extend({
    query: z
      .string()
      .max(1024)
      .optional()
      .meta({ description: 'Text to find in the name, the host or the exit address, or a whole id.' }),
    name: z.string().max(1024).optional().meta({ description: 'The whole name. Case and accents are ignored.' }),
  }),
  reply: z.array(ProxyRecord),
  paged: true,
  status: 200,
  errors: [],
})

export const getProxy = defineEndpoint({
  operationId: 'getProxy',
  method: 'GET',
  path: '/proxies/{id_or_name}',
  summary: 'Get a proxy',
  tag,
  access: 'project',
  params: OneProxy,
  reply: ProxyRecord,
  status: 200,
  errors: ['proxy_not_found'],
})

export const updateProxy = defineEndpoint({
  operationId: 'updateProxy',
  method: 'PATCH',
  path: '/proxies/{id_or_name}',
  summary: 'Rename a proxy',
  tag,
  access: 'project',
  params: OneProxy,
  body: ProxyUpdateRequest,
  reply: ProxyRecord,
  status: 200,
  errors: ['proxy_not_found'],
})

export const deleteProxy = defineEndpoint({
  operationId: 'deleteProxy',
  method: 'DELETE',
  path: '/proxies/{id_or_name}',
  summary: 'Delete a proxy',
  description: 'Sessions that use it continue without a proxy. Destinations of routes that use it get no connection.',
  tag,
  access: 'project',
  params: OneProxy,
  status: 204,
  errors: ['proxy_not_found', 'proxy_in_use'],
})

export const checkProxy = defineEndpoint({
  operationId: 'checkProxy',
  method: 'POST',
  path: '/proxies/{id_or_name}/check',
  summary: 'Check a proxy',
  description:
    'Connects through the proxy and returns its status. A check with a URL of the caller does not change the stored ' +
    'status.',
  tag,
  access: 'project',
  params: OneProxy,
  body: z.object({ url: z.string().max(2048).optional() }).prefault({}),
  reply: CheckedProxy,
  status: 200,
  errors: ['proxy_not_found', 'egress_unavailable'],
  reservedStatuses: { 422: 'A check that finds nothing is 200, with the status unavailable.' },
})
