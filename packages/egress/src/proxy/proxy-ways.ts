import type { Socket } from 'node:net'
import type { EgressProxy } from '@berth/contract/egress/egress-settings.ts'
import type { HostAndPort } from '@berth/contract/egress/host.ts'
import { HostPatternMap, parseHostPattern } from '@berth/contract/egress/host-pattern.ts'
import { EgressFailure } from '../egress-failure.ts'
import type { DirectWay, WayOptions } from './direct-way.ts'
import { openHttpTunnel } from './http-tunnel.ts'
import { destinationText, ProxyServer } from './proxy-server.ts'
import { openSocksTunnel } from './socks-tunnel.ts'
import { withinLimit } from './time-limit.ts'
import type { HttpHop, Way, Ways } from './way.ts'

/** The ways by one proxy: its servers, in no order, and the direct one for what bypasses it. */
export class ProxyWays implements Ways {
  readonly key: string
  readonly #direct: DirectWay
  readonly #bypass: HostPatternMap<true>
  readonly #servers: readonly ServerWay[]

  constructor(proxy: EgressProxy, direct: DirectWay, options: WayOptions) {
    this.key = keyOf(proxy)
    this.#direct = direct
    const patterns = proxy.bypass_hosts.map(parseHostPattern).filter((pattern) => pattern !== undefined)
    this.#bypass = new HostPatternMap(patterns.map((pattern) => [pattern, true]))
    this.#servers = proxy.upstreams.map(
      (upstream) =>
        new ServerWay(this.key, new ProxyServer(upstream, proxy.is_operators, options), proxy.is_operators && options),
    )
  }

  wayTo(destination: HostAndPort): Way {
    const { host } = destination
    return host.kind === 'name' && this.#bypass.find(host.name) ? this.#direct : this.anyServer()
  }

  anyServer(): Way {
    return this.#servers[Math.floor(Math.random() * this.#servers.length)] as Way
  }
}

export function keyOf(proxy: EgressProxy): string {
  return JSON.stringify(proxy)
}

class ServerWay implements Way {
  readonly key: string
  readonly hop: HttpHop | undefined
  readonly #server: ProxyServer
  /** For one of the operator's, the guard of what it is asked for. */
  readonly #guarded: WayOptions | false

  constructor(key: string, server: ProxyServer, guarded: WayOptions | false) {
    this.key = key
    this.#server = server
    this.#guarded = guarded
    if (server.upstream.protocol !== 'socks5') {
      this.hop = {
        authorization: this.#authorization(),
        hasSpoken: false,
        connect: (destination, signal) => this.#connectToServer(destination, signal),
      }
    }
  }

  async connect(destination: HostAndPort, signal: AbortSignal): Promise<Socket> {
    const socket = await this.#connectToServer(destination, signal)
    const { username, password } = this.#server.upstream
    const tunnel = await withinLimit('proxy-timeout', signal, (either) =>
      this.hop
        ? openHttpTunnel(socket, {
            target: destinationText(destination),
            authorization: this.hop.authorization,
            signal: either,
          })
        : openSocksTunnel(socket, { destination, username, password, signal: either }),
    )
    if (this.hop) this.hop.hasSpoken = true
    return tunnel
  }

  async #connectToServer(destination: HostAndPort, signal: AbortSignal): Promise<Socket> {
    // An operator's proxy often stands inside: what is written as an inner address it must not be asked for. Names
    // are the proxy's to look up, and so to judge.
    if (this.#guarded && destination.host.kind === 'address')
      await this.#guarded.guard.permit(destination, this.#guarded.lookup)
    return withinLimit('proxy-unreachable', signal, (either) => this.#server.connect(either))
  }

  #authorization(): string | undefined {
    const { username, password } = this.#server.upstream
    if (username === undefined && password === undefined) return undefined
    return `Basic ${Buffer.from(`${username ?? ''}:${password ?? ''}`).toString('base64')}`
  }
}

/** In the place of a proxy that is gone: nothing leaves. */
export const closedWay: Way = {
  key: 'closed',
  hop: undefined,
  connect: async () => {
    throw new EgressFailure('route-gone')
  },
}
