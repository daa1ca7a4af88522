import type { Endpoint } from '@berth/contract/endpoint.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { publicEndpoints } from '@berth/contract/index.ts'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** What a token of an issuer may be allowed. API keys are allowed all of it. */
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

/** The scopes of which a caller needs every one. Undefined: no token is enough, whatever it holds. */
export function scopesFor({
  operationId,
  tag,
}: Pick<Endpoint, 'operationId' | 'tag'>): readonly OAuthScope[] | undefined {
  // The code of an app gets an API key of its project, and so all that the key can do.
  if (operationId === 'createDeployment') return oauthScopes
  if (free.includes(tag)) return []
  if (tag === 'Browsers' || tag.startsWith('Browser ')) return ['berth:browsers']
  const scope = oauthScopes.find((each) => areas[each].includes(tag))
  return scope && [scope]
}

const endpoints = new Map(publicEndpoints.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint]))

/** Throws unless the token of the caller, if it has one, holds what the route needs. Routes of no operation need a key. */
export function requireScopes({ caller, method, routeOptions }: FastifyRequest, reply: FastifyReply): void {
  if (!caller?.token) return
  const path = (routeOptions.url ?? '').replaceAll(/:(\w+)/g, '{$1}')
  const endpoint = endpoints.get(`${method} ${path}`) ?? (method === 'HEAD' ? endpoints.get(`GET ${path}`) : undefined)
  const needed = endpoint && scopesFor(endpoint)
  if (!needed) throw new BerthError('forbidden', { reason: 'This needs an API key. Tokens of an issuer do not do.' })
  const { scopes } = caller.token
  const missing = needed.filter((scope) => !scopes.has(scope))
  if (missing.length === 0) return
  reply.header('www-authenticate', `Bearer error="insufficient_scope", scope="${needed.join(' ')}"`)
  throw new BerthError('insufficient_scope', { scopes: missing.join(' ') })
}
