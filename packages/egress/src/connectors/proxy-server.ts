import type { Socket } from 'node:net'
import { rootCertificates, connect as secure } from 'node:tls'
import type { Upstream } from '@berth/contract/egress/egress-settings.ts'
import { type HostAndPort, hostText, parseHost } from '@berth/contract/egress/host.ts'
import { EgressFailure, toEgressFailure } from '../egress-failure.ts'
import type { PermittedAddress } from '../guard/guard.ts'
import { connectToFirst } from './connect-to-first.ts'
import type { ConnectorOptions } from './direct-connector.ts'
import { unlessAborted } from './time-limit.ts'

/** Opens connections to one proxy server, with TLS if the proxy requires it. */
export class ProxyServer {
  readonly upstream: Upstream
  readonly #isOperators: boolean
  readonly #options: ConnectorOptions

  /** The operator's proxies may have addresses that sessions cannot connect to. */
  constructor(upstream: Upstream, isOperators: boolean, options: ConnectorOptions) {
    this.upstream = upstream
    this.#isOperators = isOperators
    this.#options = options
  }

  /** Rejects with `proxy-unreachable`, `proxy-not-permitted` or the reason of the signal. */
  async connect(signal: AbortSignal): Promise<Socket> {
    const address = this.#address()
    try {
      const socket = await connectToFirst(await unlessAborted(this.#find(address), signal), signal)
      return this.upstream.protocol === 'https' ? await this.#secure(socket, address, signal) : socket
    } catch (error) {
      signal.throwIfAborted()
      const { kind } = toEgressFailure(error)
      this.#options.logger.debug({ failure: kind }, 'could not connect to a proxy')
      if (kind === 'internal-error') throw error
      throw new EgressFailure(kind === 'refused' ? 'proxy-not-permitted' : 'proxy-unreachable')
    }
  }

  #address(): HostAndPort {
    const host = parseHost(this.upstream.host)
    if (!host) throw new Error('the host of a proxy is malformed')
    return { host, port: this.upstream.port }
  }

  /** A caller's proxy is a destination like any other. It must not lead into the host's own networks. */
  async #find({ host, port }: HostAndPort): Promise<readonly PermittedAddress[]> {
    const { guard, names } = this.#options
    if (!this.#isOperators) return guard.permit({ host, port }, (name) => names.addresses(name))
    const addresses = host.kind === 'address' ? [host.address] : await names.addresses(host.name)
    return addresses.map((address) => ({ address, port, mayBeOfHost: true }))
  }

  #secure(socket: Socket, { host }: HostAndPort, signal: AbortSignal): Promise<Socket> {
    const { ca_bundle } = this.upstream
    const { promise, resolve, reject } = Promise.withResolvers<Socket>()
    const tls = secure({
      socket,
      host: host.kind === 'name' ? host.name : host.address,
      ...(host.kind === 'name' && { servername: host.name }),
      ...(ca_bundle !== undefined && { ca: [...rootCertificates, ca_bundle] }),
      ALPNProtocols: ['http/1.1'],
    })
    const abort = () => tls.destroy(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    tls.once('secureConnect', () => resolve(tls))
    // The page cannot use the details of a failed TLS handshake.
    tls.on('error', () => reject(new EgressFailure('proxy-unreachable')))
    tls.once('close', () => reject(new EgressFailure('proxy-unreachable')))
    return promise.finally(() => signal.removeEventListener('abort', abort))
  }
}

/** Formats a destination for a proxy, which resolves names itself. */
export function destinationText({ host, port }: HostAndPort): string {
  return `${hostText(host)}:${port}`
}
