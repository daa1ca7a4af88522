import { lookup as systemLookup } from 'node:dns/promises'
import { parseAddress } from '@berth/contract/egress/host.ts'
import { EgressFailure } from '../egress-failure.ts'

/** Finds the addresses of a name, the preferred first; rejects with an EgressFailure when there are none. */
export type Lookup = (name: string) => Promise<readonly string[]>

/** Asks the host's own resolver, hosts file included. */
export async function lookupOnHost(name: string): Promise<readonly string[]> {
  try {
    const found = await systemLookup(name, { all: true, order: 'verbatim' })
    // An address with a zone (`fe80::1%eth0`) is link-local and of no use to anybody here.
    return found.map(({ address }) => parseAddress(address)).filter((address) => address !== undefined)
  } catch (error) {
    throw new EgressFailure(toKind(error), '', { cause: error })
  }
}

/** EAI_AGAIN says that no name server answered; nothing is known about the name. */
function toKind(error: unknown): 'timeout' | 'name-not-found' {
  return (error as NodeJS.ErrnoException).code === 'EAI_AGAIN' ? 'timeout' : 'name-not-found'
}

/**
 * Lets at most `limit` lookups run at once; more wait their turn. Each lookup holds a thread until name servers have
 * answered, so without a limit of its own one machine could keep all others from finding any name.
 */
export function limitLookups(lookup: Lookup, limit: number): Lookup {
  const waiting: (() => void)[] = []
  let running = 0

  return async (name) => {
    if (running < limit) running += 1
    else await new Promise<void>((resolve) => waiting.push(resolve))
    try {
      return await lookup(name)
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running -= 1
    }
  }
}
