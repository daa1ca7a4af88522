import type { MachineId, ProxyId } from '@berth/contract/common/ids.ts'
import type { EgressProxy, EgressSettings, Upstream } from '@berth/contract/egress/egress-settings.ts'
import { parseHost } from '@berth/contract/egress/host.ts'
import { HostPatternMap, parseHostPattern } from '@berth/contract/egress/host-pattern.ts'
import { defaultPrivateHosts } from '@berth/contract/egress/private-hosts.ts'
import type { SelectedProxy, SessionNetwork } from '../../../database/tables.ts'
import type { EgressLink } from '../../../egress-link/egress-link.ts'
import type { ProxyService, UsableProxy } from '../../proxies/proxy-service.ts'
import type { Session } from '../records/session.ts'

interface SessionEgressOptions {
  readonly proxies: ProxyService
  readonly egress: EgressLink
  /** The operator's proxy for stealth sessions without another one. */
  readonly stealthProxy: Upstream | undefined
}

/** The columns of a session that determine its route and can change while it runs. */
export type EgressColumns = Pick<Session, 'proxy' | 'network'>

/** The columns of a session that determine its route. */
export type EgressSubject = Pick<Session, 'id' | 'project_id' | 'stealth' | 'proxy' | 'network' | 'state'>

/** Whether the session has the default route. */
export function hasDefaultEgress({ proxy, network }: EgressColumns): boolean {
  return network === null && 'mode' in proxy && proxy.mode === 'default'
}

/** The egress settings of each session, as its row defines them. */
export class SessionEgress {
  readonly #options: SessionEgressOptions

  constructor(options: SessionEgressOptions) {
    this.#options = options
  }

  /** The egress settings of a session's machine. */
  async settingsOf({ id, project_id, stealth, proxy, network, state }: EgressSubject): Promise<EgressSettings> {
    const usable = await this.#options.proxies.usable(project_id, proxiesOf(proxy, network))
    const routes = state === 'starting' ? [] : (network?.proxy_routes ?? [])
    const topLevel = 'id' in proxy ? topLevelOf(usable.get(proxy.id)) : this.#modeProxy(proxy.mode, stealth)
    return {
      session_id: id,
      ...(topLevel !== undefined && { proxy: topLevel }),
      private_hosts: [...(network?.private_hosts ?? defaultPrivateHosts)],
      ...(network?.allowed_hosts && { allowed_hosts: [...network.allowed_hosts] }),
      routes: routes.map(({ hosts, proxy }) => ({ hosts: [...hosts], proxy: unlessGone(usable.get(proxy.id)) })),
    }
  }

  /**
   * The egress settings of a waiting machine, which are those of a session with the default route. With the machine's
   * id, it can reach berth's own addresses as soon as it has a session.
   */
  settingsOfWaiting(id: MachineId, stealth: boolean): EgressSettings {
    const topLevel = this.#modeProxy('default', stealth)
    return {
      session_id: id,
      ...(topLevel !== undefined && { proxy: topLevel }),
      private_hosts: [...defaultPrivateHosts],
      routes: [],
    }
  }

  /** Changes the proxy or the permitted hosts of a running session. */
  async change(session: Session, changed: Partial<EgressColumns>): Promise<void> {
    const settings = await this.settingsOf({ ...session, ...changed })
    await this.#options.egress.setSettings(session.machine_id, settings)
  }

  /**
   * Activates the routes of a new session, as the last step of its creation: until then, everything uses the top-level
   * proxy, including connections of its start page that are still open.
   */
  async activateRoutes(session: Session): Promise<void> {
    if (!session.network?.proxy_routes?.length) return
    const settings = await this.settingsOf({ ...session, state: 'active' })
    const afterRequestTo = routedStart(session.start_url, session.network)
    await this.#options.egress.setSettings(session.machine_id, settings, { afterRequestTo })
  }

  /** The certificates, in base64, that the browser of a session needs for its proxies. */
  async certificates({
    project_id,
    proxy,
    network,
  }: Omit<EgressSubject, 'id' | 'stealth' | 'state'>): Promise<readonly string[]> {
    const certificates = await this.#options.proxies.certificates(project_id, proxiesOf(proxy, network))
    return certificates.map((certificate) => certificate.toString('base64'))
  }

  #modeProxy(mode: 'direct' | 'default', stealth: boolean): EgressProxy | undefined {
    const { stealthProxy } = this.#options
    if (mode === 'direct' || !stealth || !stealthProxy) return undefined
    return { upstreams: [stealthProxy], bypass_hosts: [], is_operators: true }
  }
}

function proxiesOf(proxy: SelectedProxy, network: SessionNetwork | null): readonly ProxyId[] {
  const ofRoutes = (network?.proxy_routes ?? []).map((route) => route.proxy.id)
  return [...new Set('id' in proxy ? [proxy.id, ...ofRoutes] : ofRoutes)]
}

/** Without a deleted proxy, sessions connect directly. Without a proxy that is unavailable, they get no connection. */
function topLevelOf(proxy: UsableProxy | undefined): EgressProxy | null | undefined {
  if (proxy === 'deleted') return undefined
  return proxy === undefined || proxy === 'unavailable' ? null : proxy
}

/** A route never falls back to another proxy. */
function unlessGone(proxy: UsableProxy | undefined): EgressProxy | null {
  return proxy === undefined || typeof proxy === 'string' ? null : proxy
}

/** The `host:port` of a start page that matches a route. */
function routedStart(startUrl: string | null, { proxy_routes = [] }: SessionNetwork): string | undefined {
  const url = URL.parse(startUrl ?? '')
  if (!url || !['http:', 'https:'].includes(url.protocol)) return undefined
  const host = parseHost(url.hostname)
  if (host?.kind !== 'name') return undefined
  const patterns = proxy_routes
    .flatMap(({ hosts }) => hosts.map(parseHostPattern))
    .filter((found) => found !== undefined)
  const isRouted = new HostPatternMap(patterns.map((pattern) => [pattern, true])).find(host.name)
  return isRouted ? `${host.name}:${url.port || (url.protocol === 'https:' ? 443 : 80)}` : undefined
}
