import type { Socket } from 'node:net'
import type { EgressProxy } from '@berth/contract/egress/egress-settings.ts'
import { EgressFailure, toEgressFailure } from '../egress-failure.ts'
import type { Connector, Destination, RequestProxy } from './connector.ts'
import type { ConnectorOptions } from './direct-connector.ts'
import { openHttpTunnel } from './http-tunnel.ts'
import { destinationText, ProxyServer } from './proxy-server.ts'
import { openSocksTunnel } from './socks-tunnel.ts'
import { withinLimit } from './time-limit.ts'

/** Connects through one server of a proxy. */
export class ProxyConnector implements Connector {
  readonly key: string
  readonly isDirect = false
  readonly requests?: RequestProxy
  readonly #server: ProxyServer
  /** Guards destinations when the proxy belongs to the operator; false otherwise. */
  readonly #guarded: ConnectorOptions | false

  constructor(key: string, server: ProxyServer, guarded: ConnectorOptions | false) {
    this.key = key
    this.#server = server
    this.#guarded = guarded
    if (server.upstream.protocol !== 'socks5') {
      this.requests = {
        authorization: authorizationOf(server),
        connect: (destination, signal) => this.#connectToServer(destination, signal),
      }
    }
  }

  async connect(destination: Destination, signal: AbortSignal): Promise<Socket> {
    const socket = await this.#connectToServer(destination, signal)
    const { username, password } = this.#server.upstream
    return withinLimit('proxy-timeout', signal, (either) =>
      this.requests
        ? openHttpTunnel(socket, {
            target: destinationText(destination),
            authorization: this.requests.authorization,
            signal: either,
          })
        : openSocksTunnel(socket, { destination, username, password, signal: either }),
    )
  }

  async #connectToServer(destination: Destination, signal: AbortSignal): Promise<Socket> {
    if (this.#guarded) await permitted(destination, this.#guarded)
    return withinLimit('proxy-unreachable', signal, (either) => this.#server.connect(either))
  }
}

/** Connects through any server of the proxy, chosen again for each connection. */
export class ProxyConnectors {
  readonly #servers: readonly ProxyConnector[]

  constructor(proxy: EgressProxy, options: ConnectorOptions) {
    const key = keyOf(proxy)
    this.#servers = proxy.upstreams.map(
      (upstream) =>
        new ProxyConnector(key, new ProxyServer(upstream, proxy.is_operators, options), proxy.is_operators && options),
    )
  }

  any(): ProxyConnector {
    return this.#servers[Math.floor(Math.random() * this.#servers.length)] as ProxyConnector
  }
}

export function keyOf(proxy: EgressProxy): string {
  return JSON.stringify(proxy)
}

/**
 * An operator's proxy often runs inside a private network, so it must not be asked for internal addresses. Names are
 * resolved, and therefore judged, by the proxy.
 */
async function permitted(destination: Destination, { guard, names }: ConnectorOptions): Promise<void> {
  if (destination.host.kind !== 'address') return
  try {
    await guard.permit(destination, (name) => names.addresses(name))
  } catch (error) {
    throw toEgressFailure(error).kind === 'refused' ? new EgressFailure('proxy-destination-refused') : error
  }
}

function authorizationOf({ upstream: { username, password } }: ProxyServer): string | undefined {
  if (username === undefined && password === undefined) return undefined
  return `Basic ${Buffer.from(`${username ?? ''}:${password ?? ''}`).toString('base64')}`
}
