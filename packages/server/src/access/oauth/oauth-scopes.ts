import type { Endpoint } from '@berth/contract/endpoint.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { publicEndpoints } from '@berth/contract/index.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** The scopes that a token can have. API keys have all of them. */
export const oauthScopes = ['berth:browsers', 'berth:apps', 'berth:credentials', 'berth:organization'] as const
export type OAuthScope = (typeof oauthScopes)[number]

const areas: Readonly<Record<OAuthScope, readonly string[]>> = {
  'berth:browsers': ['Profiles', 'Extensions', 'Proxies', 'Search', 'Config Registry'],
  'berth:apps': ['Apps', 'Deployments', 'Invocations'],
  'berth:credentials': ['Credentials', 'Managed auth', 'Vaults', 'Vault Items'],
  'berth:organization': [
    ...['Projects', 'API Keys', 'Audit Logs', 'Organization', 'Webhooks', 'Telemetry Destinations'],
    ...['Credential Providers', 'Vault Provider Configs'],
  ],
}
const free = ['Authentication', 'Service']

/** The scopes that a caller needs, all of them. Undefined when no token suffices. */
export function scopesFor({
  operationId,
  tag,
}: Pick<Endpoint, 'operationId' | 'tag'>): readonly OAuthScope[] | undefined {
  // The code of an app gets an API key of its project, and thereby all rights of the key.
  if (operationId === 'createDeployment') return oauthScopes
  if (free.includes(tag)) return []
  if (tag === 'Browsers' || tag.startsWith('Browser ')) return ['berth:browsers']
  const scope = oauthScopes.find((each) => areas[each].includes(tag))
  return scope && [scope]
}

const endpoints = new Map(publicEndpoints.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint]))

/**
 * Throws if the caller has a token without the scopes that the route needs. Routes that are no operations need an API
 * key.
 */
export function requireScopes({ caller, method, routeOptions }: FastifyRequest, reply: FastifyReply): void {
  if (!caller?.token) return
  const path = (routeOptions.url ?? '').replaceAll(/:(\w+)/g, '{$1}')
  const endpoint = endpoints.get(`${method} ${path}`) ?? (method === 'HEAD' ? endpoints.get(`GET ${path}`) : undefined)
  const needed = endpoint && scopesFor(endpoint)
  if (!needed)
    throw new BerthError('forbidden', { reason: 'This needs an API key. Tokens of an issuer are not accepted.' })
  const { scopes } = caller.token
  const missing = needed.filter((scope) => !scopes.has(scope))
  if (missing.length === 0) return
  reply.header('www-authenticate', `Bearer error="insufficient_scope", scope="${needed.join(' ')}"`)
  throw new BerthError('insufficient_scope', { scopes: missing.join(' ') })
}
