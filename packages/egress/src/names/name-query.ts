import { Resolver } from 'node:dns/promises'
import { parseAddress } from '@berth/contract/egress/host.ts'
import type { AddressFamily, LookupFailure } from '@berth/contract/egress/machine-protocol.ts'

/**
 * The result of a lookup of one name and address family: the addresses, possibly none, or the reason of the failure.
 */
export type NameAnswer =
  | { readonly addresses: readonly string[]; readonly ttl: number }
  | { readonly failed: LookupFailure }

// The library (c-ares) waits less for a server that is usually fast, down to 250 ms, and doubles the time with each
// try. Six tries take more than ten seconds in total, which a resolver may need for a slow name.
const firstTryMilliseconds = 1_500
const maxTryMilliseconds = 5_000
const tries = 6

const failures: Readonly<Record<string, LookupFailure>> = {
  ENOTFOUND: 'name-not-found',
  EBADNAME: 'name-not-found',
  ETIMEOUT: 'timeout',
  ECANCELLED: 'timeout',
}

/** Queries name servers without using threads. Ignores the hosts file and search domains. */
export class NameServerQueries {
  /** The first asks all servers in turn. The others each ask one server. */
  #resolvers: readonly Resolver[] = []
  #servers: readonly string[] = []

  /** Never rejects. */
  async query(servers: readonly string[], name: string, family: AddressFamily): Promise<NameAnswer> {
    this.#use(servers)
    const [all, ...alone] = this.#resolvers
    if (!all) return { failed: 'refused' }
    const answer = await query(all, name, family)
    // Node.js configures the library so that a refusal of the first server ends the lookup. Ask each server separately
    // then.
    if (!isRefusal(answer) || alone.length < 2) return answer
    for (const resolver of alone) {
      const other = await query(resolver, name, family)
      if (!isRefusal(other)) return other
    }
    return answer
  }

  close(): void {
    for (const resolver of this.#resolvers) resolver.cancel()
  }

  /** A resolver cannot change its servers during a query, so running queries keep the old resolver. */
  #use(servers: readonly string[]): void {
    if (servers.join() === this.#servers.join()) return
    this.#servers = servers
    const usable = servers.filter((server) => createResolver([server]))
    const groups = usable.length === 0 ? [] : [usable, ...usable.map((server) => [server])]
    this.#resolvers = groups.map(createResolver).filter((resolver) => resolver !== undefined)
  }
}

async function query(resolver: Resolver, name: string, family: AddressFamily): Promise<NameAnswer> {
  try {
    const records = await (family === 4
      ? resolver.resolve4(name, { ttl: true })
      : resolver.resolve6(name, { ttl: true }))
    return {
      // An address with a zone is link-local, which no session may use.
      addresses: records.map(({ address }) => parseAddress(address)).filter((address) => address !== undefined),
      ttl: Math.min(...records.map(({ ttl }) => ttl)),
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code === 'ENODATA' ? { addresses: [], ttl: 0 } : { failed: failures[String(code)] ?? 'refused' }
  }
}

function isRefusal(answer: NameAnswer): boolean {
  return 'failed' in answer && answer.failed === 'refused'
}

/** Undefined when a server's address cannot be parsed. */
function createResolver(servers: readonly string[]): Resolver | undefined {
  const resolver = new Resolver({ timeout: firstTryMilliseconds, maxTimeout: maxTryMilliseconds, tries })
  try {
    resolver.setServers(servers)
    return resolver
  } catch {
    return undefined
  }
}
