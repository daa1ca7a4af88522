import { isIPv6 } from 'node:net'

/**
 * Where berth is reached, as `host:port`: what sessions connect to there is their own session, and nothing else of berth.
 * An address that means every one is left to egress to understand. A public https address is left out: whoever serves it
 * has its key, and berth could not answer in its place.
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
