import type { AddressFamily } from '@berth/contract/egress/machine-protocol.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { Semaphore } from '@berth/runtime/async/semaphore.ts'
import { SingleFlight } from '@berth/runtime/async/single-flight.ts'
import { EgressFailure } from '../egress-failure.ts'
import type { NameSource } from './host-files.ts'
import { NameCache } from './name-cache.ts'
import { type NameAnswer, NameServerQueries } from './name-query.ts'

export const lookupLimitMilliseconds = 10_000
/** Per machine. Queries without a response occupy a slot each, so the limit is high. */
const maxQueries = 1_024
const maxWaitingQueries = 2_048
const maxCachedAnswers = 2_048
const maxCachedSeconds = 3_600
const missingSeconds = 5
const failedSeconds = 2
/** How long the addresses of one family wait for those of the other (RFC 8305, Resolution Delay). */
const otherFamilyMilliseconds = 50

interface NameResolverOptions {
  readonly source: NameSource
  readonly clock: Clock
}

/**
 * Resolves names for one machine as the host does: hosts file, search domains, name servers. Each machine has its own
 * resolver, so that none can fill the cache of another or delay it.
 */
export class NameResolver {
  readonly #source: NameSource
  readonly #servers = new NameServerQueries()
  readonly #cache: NameCache<NameAnswer>
  readonly #pending = new SingleFlight<string, NameAnswer>()
  readonly #queries = new Semaphore(maxQueries)

  constructor({ source, clock }: NameResolverOptions) {
    this.#source = source
    this.#cache = new NameCache(clock, maxCachedAnswers)
  }

  /** Resolves the addresses of one family. A final dot disables the search domains. Never rejects. */
  async lookup(written: string, family: AddressFamily): Promise<NameAnswer> {
    const limit = Promise.withResolvers<NameAnswer>()
    const timer = setTimeout(() => limit.resolve({ failed: 'timeout' }), lookupLimitMilliseconds)
    try {
      return await Promise.race([this.#search(written.toLowerCase(), family), limit.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Resolves the addresses of both families. Rejects with an EgressFailure when there are none. */
  async addresses(written: string): Promise<readonly string[]> {
    const [six, four] = [this.lookup(written, 6), this.lookup(written, 4)]
    const first = await Promise.race([six, four])
    const isFour = 'addresses' in first && first.addresses.length > 0
    const answers = isFour ? await Promise.all([orEmpty(six), four]) : await Promise.all([six, four])
    const found = answers.flatMap((answer) => ('addresses' in answer ? answer.addresses : []))
    if (found.length > 0) return found
    const failed = answers.find((answer) => 'failed' in answer && answer.failed !== 'name-not-found')
    throw new EgressFailure(failed ? 'name-unanswered' : 'name-not-found')
  }

  close(): void {
    this.#servers.close()
  }

  async #search(written: string, family: AddressFamily): Promise<NameAnswer> {
    const name = written.replace(/\.$/, '')
    const known = knownAddresses(this.#source.hosts().get(name) ?? loopbackOf(name), family)
    if (known) return known

    let worst: NameAnswer = { failed: 'name-not-found' }
    for (const candidate of this.#candidates(name, written.endsWith('.'))) {
      const answer = await this.#answer(candidate, family)
      if ('addresses' in answer) {
        if (answer.addresses.length > 0) return answer
        worst = answer
        const other = await this.#answer(candidate, family === 4 ? 6 : 4)
        if ('addresses' in other && other.addresses.length > 0) return answer
      } else if (answer.failed !== 'name-not-found') {
        return answer
      }
    }
    return worst
  }

  #candidates(name: string, isFullyQualified: boolean): readonly string[] {
    if (isFullyQualified) return [name]
    const { search, ndots } = this.#source.nameServers()
    const longer = search.map((domain) => `${name}.${domain}`)
    return name.split('.').length - 1 >= ndots ? [name, ...longer] : [...longer, name]
  }

  /** Answers from the cache, from a query in progress, or from the name servers. */
  #answer(name: string, family: AddressFamily): Promise<NameAnswer> {
    const key = `${name} ${family}`
    const cached = this.#cache.find(key)
    if (cached) {
      const { value, seconds } = cached
      return Promise.resolve('addresses' in value ? { ...value, ttl: seconds } : value)
    }
    return this.#pending.run(key, () => this.#query(name, family, key))
  }

  async #query(name: string, family: AddressFamily, key: string): Promise<NameAnswer> {
    if (this.#queries.waiting >= maxWaitingQueries) return { failed: 'timeout' }
    await this.#queries.acquire()
    try {
      const answer = await this.#servers.query(this.#source.nameServers().servers, name, family)
      this.#cache.set(key, answer, secondsToKeep(answer))
      return answer
    } finally {
      this.#queries.release()
    }
  }
}

function secondsToKeep(answer: NameAnswer): number {
  if ('addresses' in answer)
    return answer.addresses.length > 0 ? Math.min(answer.ttl, maxCachedSeconds) : missingSeconds
  return answer.failed === 'name-not-found' ? missingSeconds : failedSeconds
}

/** The hosts file decides for both families. */
function knownAddresses(addresses: readonly string[] | undefined, family: AddressFamily): NameAnswer | undefined {
  return addresses && { addresses: addresses.filter((address) => address.includes(':') === (family === 6)), ttl: 1 }
}

/** RFC 6761: `localhost` is never sent to a name server. */
function loopbackOf(name: string): readonly string[] | undefined {
  return name === 'localhost' || name.endsWith('.localhost') ? ['127.0.0.1', '::1'] : undefined
}

async function orEmpty(answer: Promise<NameAnswer>): Promise<NameAnswer> {
  const late = Promise.withResolvers<NameAnswer>()
  const timer = setTimeout(() => late.resolve({ addresses: [], ttl: 0 }), otherFamilyMilliseconds)
  return Promise.race([answer, late.promise]).finally(() => clearTimeout(timer))
}
