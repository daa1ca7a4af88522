import ipaddr from 'ipaddr.js'

/** The kind of network that an address belongs to, as far as it affects permission to connect. */
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
 * Classifies an address in its canonical form. Only addresses that are known to be public count as public. IPv6
 * addresses that embed an IPv4 address (compatible, 6to4, Teredo) are reserved, because no page is served from them.
 * NAT64 is the exception, because IPv6-only hosts need it: see `translatedAddress`.
 */
export function addressKind(address: string): AddressKind {
  if (address === azureMetadataAddress) return 'link-local'
  const parsed = ipaddr.parse(address)
  const kind = kindsByRange[parsed.range()] ?? 'reserved'
  return kind === 'public' && parsed instanceof ipaddr.IPv6 && !parsed.match(globalIPv6) ? 'reserved' : kind
}

/** Returns the IPv4 address that a NAT64 gateway connects to. Returns any other address unchanged. */
export function translatedAddress(address: string): string {
  const parsed = ipaddr.parse(address)
  if (!(parsed instanceof ipaddr.IPv6) || !parsed.match(nat64)) return address
  return ipaddr.fromByteArray(parsed.toByteArray().slice(-4)).toString()
}
