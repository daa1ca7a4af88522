import ipaddr from 'ipaddr.js'
import { type AddressRange, parseAddressRange } from './address-range.ts'
import { type Host, hostText, parseAddress, parseHost } from './host.ts'
import { type HostPattern, hostPatternText, matchesHost, parseHostPattern } from './host-pattern.ts'

/** An entry of `network.allowed_hosts`, which applies to every port. */
export type AllowedHost =
  | { readonly kind: 'pattern'; readonly pattern: HostPattern }
  | { readonly kind: 'range'; readonly range: AddressRange }

/** An entry that breaks a rule. The message is the rule. */
export class AllowedHostError extends Error {
  override readonly name = 'AllowedHostError'
}

/** Ranges without public addresses. */
const notPublicRanges = [
  ...['0.0.0.0', '10.0.0.0', '100.64.0.0', '127.0.0.0', '169.254.0.0', '172.16.0.0', '192.0.0.0', '192.0.2.0'],
  ...['192.88.99.0', '192.168.0.0', '198.18.0.0', '198.51.100.0', '203.0.113.0', '224.0.0.0', '240.0.0.0'],
  ...['2001::', '2001:2::', '2001:10::', '2001:20::', '2001:db8::', '2002::', '3fff::'],
].map((address) => ipaddr.parse(address))

const notPublic = 'must be a public address or a range of public addresses'
const globalIPv6: [ipaddr.IPv6, number] = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Parses one entry. Names are not resolved: an entry with an address matches destinations that are written as
 * addresses. A single address is a range of one.
 */
export function parseAllowedHost(entry: string): AllowedHost {
  if (entry.includes('://')) throw new AllowedHostError('must not have a scheme')
  if (entry.includes('/')) return { kind: 'range', range: parseRange(entry) }
  const pattern = parseHostPattern(entry)
  if (pattern) {
    if (pattern.isWildcard && !pattern.name.includes('.'))
      throw new AllowedHostError('must have at least two labels after "*."')
    return { kind: 'pattern', pattern }
  }
  if (!entry.startsWith('[') && parseAddress(entry)?.includes(':'))
    throw new AllowedHostError('must write an IPv6 address in brackets')
  const host = parseHost(entry)
  if (host?.kind !== 'address')
    throw new AllowedHostError(
      'must be a host name, one with a leading "*.", a public address or a public range, without port and path',
    )
  if (!entry.startsWith('[') && entry !== host.address)
    throw new AllowedHostError('must use the usual notation of an address')
  const address = ipaddr.parse(host.address)
  return { kind: 'range', range: publicRange([address, address.kind() === 'ipv4' ? 32 : 128]) }
}

/** The canonical spelling in which an entry is stored and returned. */
export function allowedHostText(entry: AllowedHost): string {
  if (entry.kind === 'pattern') return hostPatternText(entry.pattern)
  const [first, length] = entry.range
  const address = parseAddress(first.toString()) ?? first.toString()
  const isSingle = length === (first.kind() === 'ipv4' ? 32 : 128)
  return isSingle ? hostText({ kind: 'address', address }) : `${address}/${length}`
}

export function isAllowedHost(entry: AllowedHost, host: Host): boolean {
  if (entry.kind === 'pattern') return host.kind === 'name' && matchesHost(entry.pattern, host.name)
  return host.kind === 'address' && isWithin(ipaddr.parse(host.address), entry.range)
}

function parseRange(entry: string): AddressRange {
  const written = parseAddressRange(entry)
  if (!written) throw new AllowedHostError('must be a range such as 8.8.4.0/24 or 2001:4860::/32, without port or path')
  if (!written.isCanonical) throw new AllowedHostError(`must begin with its first address, ${written.network}`)
  return publicRange(written.range)
}

/** The first address must be public, and no range without public addresses may start within it. */
function publicRange(range: AddressRange): AddressRange {
  const [first] = range
  const isPublic = first.range() === 'unicast' && (first instanceof ipaddr.IPv4 || first.match(globalIPv6))
  if (!isPublic || notPublicRanges.some((inner) => isWithin(inner, range))) throw new AllowedHostError(notPublic)
  return range
}

function isWithin(address: ipaddr.IPv4 | ipaddr.IPv6, range: AddressRange): boolean {
  return address.kind() === range[0].kind() && address.match(range as [ipaddr.IPv4, number])
}
