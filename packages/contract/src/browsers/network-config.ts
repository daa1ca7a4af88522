import { z } from 'zod'
import { Unsupported } from '../common/unsupported.ts'
import { AllowedHostError, isAllowedHost, parseAllowedHost } from '../egress/allowed-hosts.ts'
import { parseHost } from '../egress/host.ts'
import { type HostPattern, overlap, parseHostPattern } from '../egress/host-pattern.ts'
import { isPrivateHost, PrivateHostError, parsePrivateHost } from '../egress/private-hosts.ts'
import { BrowserProxyRouteTarget } from './proxy-selection.ts'

const maxPrivateHosts = 32
const maxRoutes = 10
const maxRouteHosts = 50
const maxAllowedHosts = 100

const PrivateHost = z
  .string()
  .max(255)
  .superRefine((entry, context) => {
    const rule = ruleBrokenBy(entry)
    if (rule !== undefined) context.addIssue({ code: 'custom', message: rule })
  })

const AllowedHost = z
  .string()
  .trim()
  .max(253)
  .superRefine((entry, context) => {
    const rule = allowedHostRuleBrokenBy(entry)
    if (rule !== undefined) context.addIssue({ code: 'custom', message: rule })
  })

const AllowedHosts = z.array(AllowedHost).min(1).max(maxAllowedHosts).meta({
  description: 'The only reachable hosts, in addition to private hosts. Absent: all hosts.',
})

const RouteHost = z
  .string()
  .max(253)
  .refine((text) => parseHostPattern(text) !== undefined, {
    error: 'must be a host name, or one with a leading "*.", without port',
  })

const BrowserProxyRoute = z
  .strictObject({ hosts: z.array(RouteHost).min(1).max(maxRouteHosts), proxy: BrowserProxyRouteTarget })
  .meta({ id: 'BrowserProxyRoute' })

/** The destinations that a session reaches directly, or through proxies of their own. */
export const BrowserNetworkConfig = z
  .strictObject({
    private_hosts: z.array(PrivateHost).max(maxPrivateHosts).optional().meta({
      description: 'Hosts that are reached without a proxy. Absent: the private ranges. An empty list: none.',
    }),
    proxy_routes: z
      .array(BrowserProxyRoute)
      .max(maxRoutes)
      .optional()
      .meta({ description: 'Hosts that are reached through a separate proxy, on any port.' }),
    allowed_hosts: AllowedHosts.optional(),
  })
  .superRefine(({ private_hosts = [], proxy_routes = [], allowed_hosts = [] }, context) => {
    const refuse = (path: PropertyKey[], message: string) => context.addIssue({ code: 'custom', path, message })
    const explicit = private_hosts.flatMap(patternOf)
    allowed_hosts.forEach((entry, index) => {
      const pattern = allowedPatternOf(entry)
      if (pattern && explicit.some((known) => overlap(known, pattern)))
        refuse(['allowed_hosts', index], 'overlaps an entry of private_hosts')
    })
    const routeOf = new Map<string, number>()
    proxy_routes.forEach(({ hosts }, route) => {
      hosts.forEach((text, index) => {
        const pattern = parseHostPattern(text)
        if (!pattern) return
        const path = ['proxy_routes', route, 'hosts', index]
        const key = `${pattern.isWildcard} ${pattern.name}`
        const other = routeOf.get(key)
        if (other !== undefined && other !== route) refuse(path, `is also in proxy_routes.${other}.hosts`)
        routeOf.set(key, other ?? route)
        if (explicit.some((known) => overlap(known, pattern))) refuse(path, 'overlaps an entry of private_hosts')
      })
    })
  })
  .meta({ id: 'BrowserNetworkConfig' })
export type BrowserNetworkConfig = z.infer<typeof BrowserNetworkConfig>

/** The network settings that can change while a session runs. */
export const BrowserNetworkUpdate = z
  .strictObject({
    allowed_hosts: AllowedHosts.nullish().meta({
      description: 'Only for a session that was created with a list. Null removes it permanently.',
    }),
    expected_allowlist_revision: Unsupported,
    mutation_id: Unsupported,
  })
  .meta({ id: 'BrowserNetworkUpdate' })
export type BrowserNetworkUpdate = z.infer<typeof BrowserNetworkUpdate>

/** The start page of a session must be a permitted destination. */
export function checkStartUrl(
  {
    start_url,
    network,
  }: { readonly start_url?: string | undefined; readonly network?: BrowserNetworkConfig | undefined },
  context: z.RefinementCtx,
): void {
  const { allowed_hosts, private_hosts = [] } = network ?? {}
  const isBroken =
    allowed_hosts?.some((entry) => allowedHostRuleBrokenBy(entry) !== undefined) ||
    private_hosts.some((entry) => ruleBrokenBy(entry) !== undefined)
  if (!allowed_hosts || isBroken || mayStartAt(start_url ?? null, { allowed_hosts, private_hosts })) return
  context.addIssue({ code: 'custom', path: ['start_url'], message: 'must be allowed by network.allowed_hosts' })
}

/** Whether the host of a URL is permitted by the lists. The lists have been validated before. */
export function mayStartAt(
  startUrl: string | null,
  {
    allowed_hosts,
    private_hosts = [],
  }: { readonly allowed_hosts: readonly string[]; readonly private_hosts?: readonly string[] },
): boolean {
  const url = URL.parse(startUrl ?? '')
  const host = url && ['http:', 'https:'].includes(url.protocol) ? parseHost(url.hostname) : undefined
  if (!url || !host) return true
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
  return (
    allowed_hosts.some((entry) => isAllowedHost(parseAllowedHost(entry), host)) ||
    private_hosts.some((entry) => isPrivateHost(parsePrivateHost(entry), { host, port }))
  )
}

function allowedPatternOf(entry: string): HostPattern | undefined {
  if (allowedHostRuleBrokenBy(entry) !== undefined) return undefined
  const parsed = parseAllowedHost(entry)
  return parsed.kind === 'pattern' ? parsed.pattern : undefined
}

function allowedHostRuleBrokenBy(entry: string): string | undefined {
  try {
    parseAllowedHost(entry)
    return undefined
  } catch (error) {
    if (error instanceof AllowedHostError) return error.message
    throw error
  }
}

function ruleBrokenBy(entry: string): string | undefined {
  try {
    parsePrivateHost(entry)
    return undefined
  } catch (error) {
    if (error instanceof PrivateHostError) return error.message
    throw error
  }
}

function patternOf(entry: string): HostPattern[] {
  if (ruleBrokenBy(entry) !== undefined) return []
  const parsed = parsePrivateHost(entry)
  return parsed.kind === 'pattern' ? [parsed.pattern] : []
}
