import type { Clock } from '@berth/runtime/async/clock.ts'
import { LoadingCache } from '@berth/runtime/async/loading-cache.ts'
import type { ServerStore } from '../../features/servers/server-store.ts'

const freshMilliseconds = 2_000

/** The addresses of the other servers. */
export class Peers {
  readonly #servers: ServerStore
  readonly #addresses: LoadingCache<'all', ReadonlyMap<string, string>>

  constructor(servers: ServerStore, clock: Clock) {
    this.#servers = servers
    this.#addresses = new LoadingCache({ maxEntries: 1, fresh: { milliseconds: freshMilliseconds, clock } })
  }

  /** Undefined for a server that is gone or has no address. */
  async addressOf(serverId: string): Promise<URL | undefined> {
    const address = (await this.#addresses.get('all', () => this.#load())).get(serverId)
    return address === undefined ? undefined : new URL(address)
  }

  /** Call when an address turns out to be wrong. */
  forget(): void {
    this.#addresses.clear()
  }

  async #load(): Promise<ReadonlyMap<string, string>> {
    const servers = await this.#servers.listPresent()
    return new Map(servers.flatMap(({ id, address }) => (address === null ? [] : [[id, address] as const])))
  }
}
