import type { KnownServer } from '../features/servers/server-store.ts'

interface OwnEgressPolicyOptions {
  readonly egress: {
    setPolicy(policy: { readonly allow: string[]; readonly own_addresses: string[] }): Promise<void>
  }
  readonly allow: readonly string[]
}

/**
 * What egress must know about berth's own addresses. The addresses of other servers are included: a session that
 * connects to one of them reaches only itself, as at the address of its own server.
 */
export class OwnEgressPolicy {
  readonly #options: OwnEgressPolicyOptions
  #own: readonly string[] | undefined
  #servers: readonly string[] = []

  constructor(options: OwnEgressPolicyOptions) {
    this.#options = options
  }

  /** The addresses where this server listens and is reached. */
  async setOwn(addresses: readonly string[]): Promise<void> {
    this.#own = addresses
    await this.#apply()
  }

  async setServers(servers: readonly KnownServer[]): Promise<void> {
    this.#servers = servers.flatMap(({ address }) => {
      const { protocol, hostname, port } = new URL(address ?? 'none:')
      // An https address is served with a key that berth does not have, so berth could not respond in its place.
      return protocol === 'http:' ? [`${hostname}:${port || 80}`] : []
    })
    await this.#apply()
  }

  async #apply(): Promise<void> {
    const { egress, allow } = this.#options
    if (!this.#own) return
    await egress.setPolicy({ allow: [...allow], own_addresses: [...new Set([...this.#own, ...this.#servers])] })
  }
}
