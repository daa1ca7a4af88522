import { type HostAndPort, hostText, parseHostAndPort } from '@berth/contract/egress/host.ts'

/** Where an HTTP request goes, and what its new first lines say. */
export interface RequestTarget {
  readonly destination: HostAndPort
  /** Host and port as the client wrote them, for the header `Host`. */
  readonly authority: string
  /** Path and query as the client wrote them: servers may tell `/a%2Fb` from `/a/b`. */
  readonly path: string
}

/** Reads the absolute form that clients send to a proxy, `http://host:port/path?query`. */
export function parseRequestTarget(text: string): RequestTarget | undefined {
  const [, authority = '', rest = ''] = /^http:\/\/([\x21-\x7e]*?)([/?].*)?$/i.exec(withoutFragment(text)) ?? []
  const destination = parseHostAndPort(authority, 80)
  return destination && { destination, authority, path: rest.startsWith('/') ? rest : `/${rest}` }
}

/** Reads the form that servers get, `/path?query`, of a request whose destination is known already. */
export function parseOriginTarget(text: string, destination: HostAndPort): RequestTarget | undefined {
  const path = withoutFragment(text)
  return /^\/[\x21-\x7e]*$/.test(path) ? { destination, authority: usualAuthority(destination), path } : undefined
}

/** How a browser writes a destination of plain HTTP. */
export function usualAuthority({ host, port }: HostAndPort): string {
  return port === 80 ? hostText(host) : `${hostText(host)}:${port}`
}

/** Reads the target of a CONNECT, `host:port`. */
export function parseTunnelTarget(text: string): HostAndPort | undefined {
  return /^[\x21-\x7e]+$/.test(text) ? parseHostAndPort(text) : undefined
}

function withoutFragment(text: string): string {
  return text.split('#', 1)[0] ?? text
}
