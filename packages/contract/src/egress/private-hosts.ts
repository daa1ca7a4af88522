import ipaddr from 'ipaddr.js'
import { type AddressRange, parseAddressRange } from './address-range.ts'
import { type HostAndPort, hostText, parseAddress, parseHost, parseHostAndPort } from './host.ts'
import { type HostPattern, hostPatternText, matchesHost, parseHostPattern } from './host-pattern.ts'

/** A destination that a session reaches without its proxy (`private_hosts`). Without a port, it includes every port. */
export type PrivateHost =
  | { readonly kind: 'pattern'; readonly pattern: HostPattern; readonly port: number | undefined }
  | { readonly kind: 'address'; readonly address: string; readonly port: number | undefined }
  | { readonly kind: 'range'; readonly range: AddressRange }

/** The default private hosts: RFC 1918, carrier-grade NAT and unique local IPv6. */
export const defaultPrivateHosts = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7']

const privateRanges: readonly AddressRange[] = defaultPrivateHosts.map((range) => ipaddr.parseCIDR(range))
const onlyPrivate = `must be within ${defaultPrivateHosts.join(', ')}`

/** An entry that breaks a rule. The message is the rule. */
export class PrivateHostError extends Error {
  override readonly name = 'PrivateHostError'
}

/** Parses one entry. Names are not resolved: an entry with an address matches URLs that are written with it. */
export function parsePrivateHost(entry: string): PrivateHost {
  if (entry.includes('://')) throw new PrivateHostError('must not have a scheme')
  if (entry.startsWith('[') && entry.includes('/'))
    throw new PrivateHostError('must write an IPv6 range without brackets')
  if (entry.includes('/')) return { kind: 'range', range: parseRange(entry) }
  if (parseAddress(entry)?.includes(':') || (parseAddress(entry) && entry.includes(':')))
    throw new PrivateHostError('must write an IPv6 address in brackets')
  return parseDestination(entry)
}

/** The canonical spelling in which an entry is stored and returned. */
export function privateHostText(entry: PrivateHost): string {
  if (entry.kind === 'range') return `${parseAddress(entry.range[0].toString())}/${entry.range[1]}`
  const host =
    entry.kind === 'pattern' ? hostPatternText(entry.pattern) : hostText({ kind: 'address', address: entry.address })
  return entry.port === undefined ? host : `${host}:${entry.port}`
}

export function isPrivateHost(entry: PrivateHost, { host, port }: HostAndPort): boolean {
  if (entry.kind === 'range') return host.kind === 'address' && isWithin(ipaddr.parse(host.address), entry.range)
  if (entry.port !== undefined && entry.port !== port) return false
  if (entry.kind === 'address') return host.kind === 'address' && host.address === entry.address
  return host.kind === 'name' && matchesHost(entry.pattern, host.name)
}

function parseDestination(entry: string): PrivateHost {
  const [, text = '', portText] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(entry) ?? []
  const port = portOf(portText)
  const pattern = parseHostPattern(text)
  if (pattern) {
    if (pattern.isWildcard && !pattern.name.includes('.'))
      throw new PrivateHostError('must have at least two labels after "*."')
    return { kind: 'pattern', pattern, port }
  }
  const host = parseHost(text)
  if (host?.kind !== 'address')
    throw new PrivateHostError('must be a host name, one with a leading "*.", a private address or a private range')
  // `0x0a.1` and `10.1` are addresses that do not look like one.
  if (!text.startsWith('[') && text !== host.address)
    throw new PrivateHostError('must use the usual notation of an address')
  if (!privateRanges.some((range) => isWithin(ipaddr.parse(host.address), range)))
    throw new PrivateHostError(onlyPrivate)
  return { kind: 'address', address: host.address, port }
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const port = parseHostAndPort(`host:${text}`)?.port
  if (port === undefined) throw new PrivateHostError('must have a port from 1 to 65535, or none')
  return port
}

function parseRange(entry: string): AddressRange {
  const written = parseAddressRange(entry)
  if (!written) throw new PrivateHostError('must be a range such as 10.0.0.0/8 or fd00::/8, without port or path')
  const { range, network, isCanonical } = written
  if (!isCanonical) throw new PrivateHostError(`must begin with its first address, ${network}`)
  const isPrivate = privateRanges.some((outer) => range[1] >= outer[1] && isWithin(range[0], outer))
  if (!isPrivate) throw new PrivateHostError(onlyPrivate)
  return range
}

function isWithin(address: ipaddr.IPv4 | ipaddr.IPv6, range: AddressRange): boolean {
  return address.kind() === range[0].kind() && address.match(range as [ipaddr.IPv4, number])
}
