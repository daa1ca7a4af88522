import { isIPv6 } from 'node:net'

/**
 * The addresses of berth, as `host:port`. A session that connects there reaches only its own session. Egress resolves
 * unspecified addresses. A public https address is omitted: its reverse proxy has the certificate, so berth could not
 * answer in its place.
 */
export function ownAddresses(
  { address, port }: { readonly address: string; readonly port: number },
  publicUrl: string | undefined,
): readonly string[] {
  const listening = address === '::' ? [`0.0.0.0:${port}`, `[::]:${port}`] : [withPort(address, port)]
  const url = publicUrl === undefined ? undefined : new URL(publicUrl)
  return url?.protocol === 'http:'
    ? [...new Set([...listening, withPort(url.hostname, Number(url.port || 80))])]
    : listening
}

function withPort(host: string, port: number): string {
  return isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`
}
