import type { EgressProxy, EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import type { HostAndPort } from '@berth/contract/egress/host.ts'
import { HostPatternMap, parseHostPattern } from '@berth/contract/egress/host-pattern.ts'
import { isPrivateHost, type PrivateHost, parsePrivateHost } from '@berth/contract/egress/private-hosts.ts'
import { DirectWay, type WayOptions } from './direct-way.ts'
import { closedWay, keyOf, ProxyWays } from './proxy-ways.ts'
import type { Way, Ways } from './way.ts'

/**
 * By which way each connection of a machine leaves: private hosts directly, then by the route that names the host,
 * then by the proxy of the session. Whether a direct connection is allowed at all is the guard's to say.
 */
export class MachineWays implements Ways {
  readonly #options: WayOptions
  readonly #direct: DirectWay
  #proxies = new Map<string, ProxyWays>()
  #privateHosts: readonly PrivateHost[] = []
  #routes = new HostPatternMap<Ways>([])
  #otherwise: Ways

  constructor(settings: EgressSettings, options: WayOptions) {
    this.#options = options
    this.#direct = new DirectWay(options)
    this.#otherwise = { wayTo: () => this.#direct }
    this.set(settings)
  }

  /** Holds for connections that are opened from now on. */
  set({ proxy, private_hosts, routes }: EgressSettings): void {
    const known = this.#proxies
    this.#proxies = new Map()
    const direct: Ways = { wayTo: () => this.#direct }
    const closed: Ways = { wayTo: () => closedWay }
    this.#privateHosts = private_hosts.map(parsePrivateHost)
    this.#routes = new HostPatternMap(
      routes.flatMap((route) => {
        const ways = route.proxy ? this.#waysBy(route.proxy, known) : closed
        const patterns = route.hosts.map(parseHostPattern).filter((pattern) => pattern !== undefined)
        return patterns.map((pattern) => [pattern, ways] as const)
      }),
    )
    if (proxy === undefined) this.#otherwise = direct
    else this.#otherwise = proxy ? this.#waysBy(proxy, known) : closed
  }

  wayTo(destination: HostAndPort): Way {
    const { host } = destination
    if (this.#privateHosts.some((entry) => isPrivateHost(entry, destination))) return this.#direct
    const route = host.kind === 'name' ? this.#routes.find(host.name) : undefined
    return (route ?? this.#otherwise).wayTo(destination)
  }

  /** A proxy that stays keeps what is known of it. */
  #waysBy(proxy: EgressProxy, known: ReadonlyMap<string, ProxyWays>): ProxyWays {
    const key = keyOf(proxy)
    const ways = this.#proxies.get(key) ?? known.get(key) ?? new ProxyWays(proxy, this.#direct, this.#options)
    this.#proxies.set(key, ways)
    return ways
  }
}
