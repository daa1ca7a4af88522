import ipaddr from 'ipaddr.js'

/** What an address leads to, as far as that decides whether a session may connect. */
export type AddressKind = 'public' | 'unspecified' | 'loopback' | 'link-local' | 'private' | 'multicast' | 'reserved'

const kindsByRange: Readonly<Record<string, AddressKind>> = {
  unspecified: 'unspecified',
  loopback: 'loopback',
  linkLocal: 'link-local',
  private: 'private',
  carrierGradeNat: 'private',
  uniqueLocal: 'private',
  deprecatedSiteLocal: 'private',
  multicast: 'multicast',
  unicast: 'public',
}

// Azure serves its metadata on this public address too, and only to the host itself.
const azureMetadataAddress = '168.63.129.16'
const globalIPv6 = ipaddr.IPv6.parseCIDR('2000::/3')
const nat64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96')

/**
 * The kind of an address in its usual spelling. Only what is known to be public is: IPv6 addresses that carry an IPv4
 * address inside (compatible, 6to4, Teredo) are reserved, for no page is served from them. NAT64 is the exception,
 * since hosts that have IPv6 alone reach the rest of the world by it: see `translatedAddress`.
 */
export function addressKind(address: string): AddressKind {
  if (address === azureMetadataAddress) return 'link-local'
  const parsed = ipaddr.parse(address)
  const kind = kindsByRange[parsed.range()] ?? 'reserved'
  return kind === 'public' && parsed instanceof ipaddr.IPv6 && !parsed.match(globalIPv6) ? 'reserved' : kind
}

/** The IPv4 address that a NAT64 gateway makes of this one; any other address is returned as it is. */
export function translatedAddress(address: string): string {
  const parsed = ipaddr.parse(address)
  if (!(parsed instanceof ipaddr.IPv6) || !parsed.match(nat64)) return address
  return ipaddr.fromByteArray(parsed.toByteArray().slice(-4)).toString()
}
