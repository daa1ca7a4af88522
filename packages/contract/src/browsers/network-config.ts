import { z } from 'zod'
import { type HostPattern, overlap, parseHostPattern } from '../egress/host-pattern.ts'
import { PrivateHostError, parsePrivateHost } from '../egress/private-hosts.ts'
import { BrowserProxyRouteTarget } from './proxy-selection.ts'

const maxPrivateHosts = 32
const maxRoutes = 10
const maxRouteHosts = 50

const PrivateHost = z
  .string()
  .max(255)
  .superRefine((entry, context) => {
    const rule = ruleBrokenBy(entry)
    if (rule !== undefined) context.addIssue({ code: 'custom', message: rule })
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

/** Which destinations a session reaches directly, and which by a proxy of their own. */
export const BrowserNetworkConfig = z
  .object({
    private_hosts: z
      .array(PrivateHost)
      .max(maxPrivateHosts)
      .optional()
      .meta({ description: 'Reached without a proxy. Absent: the private ranges; an empty list: none.' }),
    proxy_routes: z
      .array(BrowserProxyRoute)
      .max(maxRoutes)
      .optional()
      .meta({ description: 'Hosts that are reached by a proxy of their own, whatever the port.' }),
  })
  .superRefine(({ private_hosts = [], proxy_routes = [] }, context) => {
    const refuse = (path: PropertyKey[], message: string) => context.addIssue({ code: 'custom', path, message })
    const explicit = private_hosts.flatMap(patternOf)
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
