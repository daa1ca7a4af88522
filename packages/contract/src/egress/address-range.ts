import ipaddr from 'ipaddr.js'
import { parseAddress } from './host.ts'

export type AddressRange = readonly [first: ipaddr.IPv4 | ipaddr.IPv6, prefixLength: number]

export interface ParsedRange {
  readonly range: AddressRange
  /** The first address of the range. Differs from the input when that has host bits. */
  readonly network: string
  readonly isCanonical: boolean
}

/** Parses a range in CIDR notation, `10.0.0.0/8` or `fd00::/8`, or returns undefined. */
export function parseAddressRange(text: string): ParsedRange | undefined {
  const [, firstText = '', lengthText] = /^([^/]+)\/(0|[1-9][0-9]{0,2})$/.exec(text) ?? []
  const first = parseAddress(firstText)
  const length = Number(lengthText)
  const isIPv4 = !firstText.includes(':')
  if (!first || isIPv4 === first.includes(':') || length > (isIPv4 ? 32 : 128)) return undefined

  const canonical = `${first}/${length}`
  const network = (
    isIPv4 ? ipaddr.IPv4.networkAddressFromCIDR(canonical) : ipaddr.IPv6.networkAddressFromCIDR(canonical)
  ).toString()
  return { range: [ipaddr.parse(first), length], network, isCanonical: parseAddress(network) === first }
}
