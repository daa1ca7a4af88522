import type { EgressProxy, Upstream } from '@berth/contract/egress/egress-settings.ts'
import { parseHost } from '@berth/contract/egress/host.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { type ManagedProxyType, managedProxyTypes } from '@berth/contract/proxies/proxy.ts'
import type { Targeting } from '@berth/contract/proxies/targeting.ts'
import { targetingFields } from '@berth/contract/proxies/targeting.ts'
import { z } from 'zod'

/** One of the operator's proxy servers, and its location. */
export interface PoolServer extends Omit<Targeting, 'os'> {
  readonly upstream: Upstream
}

export type ProxyPools = Readonly<Partial<Record<ManagedProxyType, readonly PoolServer[]>>>

const { os: _os, ...locationFields } = targetingFields
const defaultCountry = 'US'
const maxSuggestions = 10
const europeanUnion = 'AT BE BG HR CY CZ DK EE FI FR DE GR HU IE IT LV LT LU MT NL PL PT RO SK SI ES SE'.split(' ')

const PoolsFile = z.strictObject(
  Object.fromEntries(
    managedProxyTypes.map((type) => [type, z.array(z.strictObject({ url: z.string(), ...locationFields })).optional()]),
  ),
)

/** Parses the operator's configuration of proxies. Throws a sentence that contains no part of an address. */
export function parseProxyPools(text: string): ProxyPools {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new Error('is not JSON')
  }
  const parsed = PoolsFile.safeParse(json)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new Error(`${issue?.path.join('.') || 'the whole'}: ${issue?.message}`)
  }
  return Object.fromEntries(
    Object.entries(parsed.data).map(([type, servers = []]) => [
      type,
      (servers as readonly ({ url: string } & Targeting)[]).map(({ url, ...place }, index) => {
        const upstream = parseUpstream(url)
        if (!upstream) throw new Error(`${type}.${index}.url: must have the form http://user:password@host:port`)
        return { ...place, upstream }
      }),
    ]),
  )
}

/** Parses `http://user:password@host:port`, or the same with https or socks5. */
export function parseUpstream(text: string): Upstream | undefined {
  const protocol = /^(https?|socks5):\/\//.exec(text)?.[1] as Upstream['protocol'] | undefined
  // URLs of other schemes keep the spelling of the host. This scheme normalizes it as a browser does.
  const url = protocol && URL.parse(text.replace(/^\w+:/, 'http:'))
  if (!url || !parseHost(url.hostname) || url.pathname !== '/' || url.search || url.hash) return undefined
  const usualPort = { http: 80, https: 443, socks5: 1080 }[protocol]
  try {
    return {
      protocol,
      host: url.hostname.replaceAll(/[[\]]/g, ''),
      port: Number(/:(\d+)\/?$/.exec(text)?.[1] ?? usualPort),
      ...(url.username && { username: decodeURIComponent(url.username) }),
      ...(url.password && { password: decodeURIComponent(url.password) }),
    }
  } catch {
    return undefined
  }
}

/** Returns the servers at the requested location. If there is none, rejects and lists the available locations. */
export function selectServers(pools: ProxyPools, type: ManagedProxyType, target: Targeting): EgressProxy['upstreams'] {
  const servers = pools[type] ?? []
  if (servers.length === 0) {
    const reason = `${type} proxies are not available: the operator of this service has configured none.`
    throw new BerthError('field_not_supported', { field: 'type', reason })
  }
  let candidates = servers
  for (const [field, wanted] of Object.entries(locationOf(type, target))) {
    const of = (server: PoolServer) => server[field as keyof PoolServer] as string | undefined
    const matching = candidates.filter((server) => matches(of(server), field, wanted))
    if (matching.length === 0) {
      const known = [...new Set(candidates.map(of).filter((value) => value !== undefined))].sort()
      const suggestions = known.slice(0, maxSuggestions).join(', ') || 'none'
      const reason = `${type} proxies are not available there. Available are: ${suggestions}.`
      throw new BerthError('field_not_supported', { field: `config.${field}`, reason })
    }
    candidates = matching
  }
  return candidates.map(({ upstream }) => upstream)
}

/** The fields that must match. Without a country, some types accept any and others use their default. */
function locationOf(type: ManagedProxyType, { country, city, state, zip, asn }: Targeting): Record<string, string> {
  const isWorldwide = type === 'residential' || type === 'mobile'
  const place = { country: country ?? (isWorldwide ? undefined : defaultCountry), city, state, zip, asn }
  return Object.fromEntries(Object.entries(place).filter(([, value]) => value !== undefined)) as Record<string, string>
}

function matches(value: string | undefined, field: string, wanted: string): boolean {
  if (field === 'country' && wanted === 'EU') return value !== undefined && ['EU', ...europeanUnion].includes(value)
  return value === wanted
}
