import ipaddr from 'ipaddr.js'

/**
 * A host in the canonical spelling for comparison and lookup: a name in lower-case ASCII without its final dot, or an
 * address as RFC 5952 and dotted decimals write it. An IPv4-mapped IPv6 address (`::ffff:10.0.0.1`) is IPv4.
 */
export type Host =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'address'; readonly address: string }

export interface HostAndPort {
  readonly host: Host
  readonly port: number
}

const maxNameLength = 253
const label = /^[a-z0-9_-]{1,63}$/
// The URL parser removes tabs and line ends, and takes the others for the end of the host.
const foreignCharacters = /[\s/\\?#@]/

/**
 * Parses a host like the WHATWG URL standard, and so like Chromium: `0x7f.1`, `2130706433`, `１２７.0.0.1` and
 * `127.0.0.1.` are all 127.0.0.1. Anything that is neither an address nor a DNS name is `undefined`, so that no
 * resolver can interpret it as an address. IPv6 addresses have brackets.
 */
export function parseHost(text: string): Host | undefined {
  const isBracketed = text.startsWith('[')
  if (foreignCharacters.test(text) || (!isBracketed && text.includes(':'))) return undefined

  const url = URL.parse(`http://${text}/`)
  if (!url || url.port !== '' || url.pathname !== '/') return undefined
  const address = parseAddress(isBracketed ? url.hostname.slice(1, -1) : url.hostname)
  if (address) return { kind: 'address', address }

  const name = url.hostname.replace(/\.$/, '')
  if (name.length > maxNameLength || !name.split('.').every((part) => label.test(part))) return undefined
  // A second final dot hides an address from the URL parser: `127.0.0.1..`
  return isNumeric(name) ? undefined : { kind: 'name', name }
}

/** Parses `host:port`, with IPv6 addresses in brackets. A missing port becomes `defaultPort`, if there is one. */
export function parseHostAndPort(text: string, defaultPort?: number): HostAndPort | undefined {
  const [, hostText, portText] = /^(\[[^\]]*\]|[^:]*)(?::([0-9]{1,5}))?$/.exec(text) ?? []
  if (!hostText) return undefined

  const host = parseHost(hostText)
  const port = portText === undefined ? defaultPort : Number(portText)
  return host && port !== undefined && port >= 1 && port <= 65_535 ? { host, port } : undefined
}

/** Converts an address to the canonical spelling of `Host`. Anything else is `undefined`. */
export function parseAddress(text: string): string | undefined {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text).toString()
  if (!text.includes(':') || text.includes('%') || !ipaddr.IPv6.isValid(text)) return undefined

  const address = ipaddr.IPv6.parse(text)
  return address.isIPv4MappedAddress() ? address.toIPv4Address().toString() : address.toRFC5952String()
}

/** Formats the host for use before a port. */
export function hostText(host: Host): string {
  if (host.kind === 'name') return host.name
  return host.address.includes(':') ? `[${host.address}]` : host.address
}

/** No top-level domain is a number, but the resolvers of some systems take such names for addresses. */
function isNumeric(name: string): boolean {
  return /(^|\.)(0x[0-9a-f]*|[0-9]+)$/.test(name)
}
