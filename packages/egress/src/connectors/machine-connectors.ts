import { type AllowedHost, isAllowedHost, parseAllowedHost } from '@berth/contract/egress/allowed-hosts.ts'
import type { EgressProxy, EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import type { HostAndPort } from '@berth/contract/egress/host.ts'
import { HostPatternMap, parseHostPattern } from '@berth/contract/egress/host-pattern.ts'
import { isPrivateHost, type PrivateHost, parsePrivateHost } from '@berth/contract/egress/private-hosts.ts'
import { EgressFailure, type FailureKind } from '../egress-failure.ts'
import type { Connector } from './connector.ts'
import { type ConnectorOptions, DirectConnector } from './direct-connector.ts'
import { OwnSessionConnector } from './own-session-connector.ts'
import { ProxyConnectors } from './proxy-connector.ts'

interface Rule {
  connectorFor(name: string | undefined): Connector
}

/**
 * Chooses how each connection leaves. Connections to berth's own addresses never use a proxy. Private hosts connect
 * directly. All other allowed hosts use their route, or else the session's proxy. The guard still decides whether a
 * direct connection is permitted.
 */
export class MachineConnectors {
  readonly #options: ConnectorOptions
  readonly #direct: Connector
  #sessionId: string | undefined
  #privateHosts: readonly PrivateHost[] = []
  #allowedHosts: readonly AllowedHost[] | undefined
  #routes = new HostPatternMap<Rule>([])
  #otherwise: Rule
  /** Whether the settings can apply to any name. */
  #namesDecide = false

  constructor(settings: EgressSettings, options: ConnectorOptions) {
    this.#options = options
    this.#direct = new DirectConnector(options)
    this.#otherwise = { connectorFor: () => this.#direct }
    this.set(settings)
  }

  /** Applies to connections that are opened from now on. */
  set({ session_id, proxy, private_hosts, routes, allowed_hosts }: EgressSettings): void {
    this.#sessionId = session_id
    this.#privateHosts = private_hosts.map(parsePrivateHost)
    this.#allowedHosts = allowed_hosts?.map(parseAllowedHost)
    this.#routes = new HostPatternMap(
      routes.flatMap((route) => {
        const rule = this.#ruleBy(route.proxy)
        const patterns = route.hosts.map(parseHostPattern).filter((pattern) => pattern !== undefined)
        return patterns.map((pattern) => [pattern, rule] as const)
      }),
    )
    this.#otherwise = proxy === undefined ? { connectorFor: () => this.#direct } : this.#ruleBy(proxy)
    this.#namesDecide = proxy !== undefined || allowed_hosts !== undefined
  }

  connectorFor(destination: HostAndPort): Connector {
    const ownSession = this.#options.guard.ownSessionSocket(destination)
    if (ownSession !== undefined) {
      return this.#sessionId === undefined ? noSession : new OwnSessionConnector(ownSession, this.#sessionId)
    }
    if (this.#privateHosts.some((entry) => isPrivateHost(entry, destination))) return this.#direct
    if (this.#allowedHosts?.some((entry) => isAllowedHost(entry, destination.host)) === false) return notAllowed
    const name = destination.host.kind === 'name' ? destination.host.name : undefined
    const route = name === undefined ? undefined : this.#routes.find(name)
    return (route ?? this.#otherwise).connectorFor(name)
  }

  /** Whether connections must be identified by this name. The machine then does not learn the real addresses. */
  needsName(name: string): boolean {
    return this.#namesDecide || this.#routes.find(name) !== undefined
  }

  #ruleBy(proxy: EgressProxy | null): Rule {
    if (!proxy) return { connectorFor: () => closed }
    const connectors = new ProxyConnectors(proxy, this.#options)
    const patterns = proxy.bypass_hosts.map(parseHostPattern).filter((pattern) => pattern !== undefined)
    const bypass = new HostPatternMap<true>(patterns.map((pattern) => [pattern, true]))
    return {
      connectorFor: (name) => (name !== undefined && bypass.find(name) ? this.#direct : connectors.any()),
    }
  }
}

function failing(kind: FailureKind): Connector {
  return {
    key: kind,
    isDirect: false,
    connect: async () => {
      throw new EgressFailure(kind)
    },
  }
}

/** Replaces a deleted proxy, so that nothing leaves directly. */
const closed = failing('route-gone')
const notAllowed = failing('not-allowed')
/** For a machine that is not assigned to a session yet. */
const noSession = failing('refused')
