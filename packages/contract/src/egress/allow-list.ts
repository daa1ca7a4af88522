import { BerthError } from '../errors.ts'
import { type AddressRange, parseAddressRange } from './address-range.ts'
import { hostText, parseAddress, parseHost, parseHostAndPort } from './host.ts'

/** A destination that the operator permits in addition to public addresses. Without a port, it includes all ports. */
export type AllowEntry =
  | { readonly kind: 'name'; readonly name: string; readonly port: number | undefined }
  | { readonly kind: 'address'; readonly address: string; readonly port: number | undefined }
  | { readonly kind: 'range'; readonly range: AddressRange }

/**
 * Parses the entries of BERTH_EGRESS_ALLOW. Throws `invalid_input` for the first invalid entry, with the correct form.
 */
export function parseAllowList(entries: readonly string[]): readonly AllowEntry[] {
  return entries.map((entry) =>
    entry.includes('/') ? { kind: 'range', range: parseRange(entry) } : parseDestination(entry),
  )
}

function parseDestination(entry: string): AllowEntry {
  if (entry.includes('*')) throw badEntry(entry, 'wildcards are not supported, name each host')
  if (entry.includes(':') && parseAddress(entry))
    throw badEntry(entry, `write an IPv6 address in brackets, as [${entry}]`)
  const withPort = parseHostAndPort(entry)
  const host = withPort?.host ?? parseHost(entry)
  if (!host) throw badEntry(entry, 'expected host, host:port, address, address:port or a CIDR range')

  const port = withPort?.port
  if (host.kind === 'name') return { kind: 'name', name: host.name, port }
  const usual = hostText(host) + (port === undefined ? '' : `:${port}`)
  // An unusual spelling of an address is more likely a mistake than intended.
  if (entry.toLowerCase() !== usual) throw badEntry(entry, `write it as ${usual}`)
  return { kind: 'address', address: host.address, port }
}

function parseRange(entry: string): AddressRange {
  const written = parseAddressRange(entry)
  if (!written) throw badEntry(entry, 'expected a CIDR range such as 10.0.0.0/8 or fd00::/8, without a port')
  if (!written.isCanonical) throw badEntry(entry, `this range begins at ${written.network}`)
  return written.range
}

function badEntry(entry: string, reason: string): BerthError {
  return new BerthError('invalid_input', { reason: `"${entry}" cannot be allowed: ${reason}.` })
}
