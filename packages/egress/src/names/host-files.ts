import { readFileSync, statSync } from 'node:fs'
import { parseAddress, parseHost } from '@berth/contract/egress/host.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'

/** The settings of the host's `resolv.conf` that affect lookups. */
export interface NameServers {
  /** Addresses or `address:port`, in the order in which they are asked. */
  readonly servers: readonly string[]
  /** Domains that are appended to a name. */
  readonly search: readonly string[]
  /** Names with fewer dots are tried with the search domains first. */
  readonly ndots: number
}

export type Hosts = ReadonlyMap<string, readonly string[]>

/** The source of host entries and name servers. */
export interface NameSource {
  hosts(): Hosts
  nameServers(): NameServers
}

const maxServers = 3 // As in the C library.
const maxSearchDomains = 6
const maxNdots = 15
const maxAgeMilliseconds = 1_000

/** Reads the host's files again when they change. Checks at most once a second. */
export class HostFiles implements NameSource {
  readonly hosts: () => Hosts
  readonly nameServers: () => NameServers

  constructor(clock: Clock, { hosts = '/etc/hosts', nameServers = '/etc/resolv.conf' } = {}) {
    this.hosts = watched(hosts, parseHosts, clock)
    this.nameServers = watched(nameServers, parseNameServers, clock)
  }
}

export function parseHosts(text: string): Hosts {
  const hosts = new Map<string, string[]>()
  for (const line of text.split('\n')) {
    const [addressText = '', ...names] = words(line)
    const address = parseAddress(addressText)
    if (!address) continue
    for (const written of names) {
      const host = parseHost(written)
      if (host?.kind !== 'name') continue
      const known = hosts.get(host.name)
      if (!known) hosts.set(host.name, [address])
      else if (!known.includes(address)) known.push(address)
    }
  }
  return hosts
}

export function parseNameServers(text: string): NameServers {
  const servers: string[] = []
  let search: readonly string[] = []
  let ndots = 1
  for (const line of text.split('\n')) {
    const [keyword, ...values] = words(line)
    if (keyword === 'nameserver' && values[0] !== undefined) servers.push(values[0])
    // The last of several `search` and `domain` lines counts.
    else if (keyword === 'search') search = values
    else if (keyword === 'domain') search = values.slice(0, 1)
    else if (keyword === 'options') {
      const written = values.findLast((value) => /^ndots:[0-9]{1,3}$/.test(value))
      if (written) ndots = Math.min(Number(written.slice('ndots:'.length)), maxNdots)
    }
  }
  const domains = search.flatMap((domain) => {
    const host = parseHost(domain)
    return host?.kind === 'name' ? [host.name] : []
  })
  return {
    servers: servers.length > 0 ? servers.slice(0, maxServers) : ['127.0.0.1'],
    search: domains.slice(0, maxSearchDomains),
    ndots,
  }
}

function words(line: string): readonly string[] {
  return (line.split(/[#;]/, 1)[0] ?? '').split(/\s+/).filter((word) => word !== '')
}

function watched<Content>(path: string, parse: (text: string) => Content, clock: Clock): () => Content {
  let content = parse('')
  let version = ''
  let lookedAt = Number.NEGATIVE_INFINITY
  return () => {
    const now = clock.now().getTime()
    if (Math.abs(now - lookedAt) <= maxAgeMilliseconds) return content
    lookedAt = now
    const found = statSync(path, { throwIfNoEntry: false })
    const current = found ? `${found.dev} ${found.ino} ${found.mtimeMs} ${found.size}` : 'none'
    if (current !== version) {
      version = current
      content = parse(found ? readFileSync(path, 'utf8') : '')
    }
    return content
  }
}
