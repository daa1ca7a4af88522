import type { KnownServer } from '../features/servers/server-store.ts'

interface OwnEgressPolicyOptions {
  readonly egress: {
    setPolicy(policy: { readonly allow: string[]; readonly own_addresses: string[] }): Promise<void>
  }
  readonly allow: readonly string[]
}

/**
 * What egress has to know of berth's own addresses. Those of the other servers count as own: a session that connects to
 * one of them reaches itself, as at the address of its own server, and nothing else there.
 */
export class OwnEgressPolicy {
  readonly #options: OwnEgressPolicyOptions
  #own: readonly string[] | undefined
  #servers: readonly string[] = []

  constructor(options: OwnEgressPolicyOptions) {
    this.#options = options
  }

  /** Where this server listens, and is reached. */
  async setOwn(addresses: readonly string[]): Promise<void> {
    this.#own = addresses
    await this.#apply()
  }

  async setServers(servers: readonly KnownServer[]): Promise<void> {
    this.#servers = servers.flatMap(({ address }) => {
      const { protocol, hostname, port } = new URL(address ?? 'none:')
      // Whoever serves an https address has its key, and berth could not answer in its place.
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
