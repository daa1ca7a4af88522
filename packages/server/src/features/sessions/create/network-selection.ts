import type { BrowserNetworkConfig } from '@berth/contract/browsers/network-config.ts'
import { allowedHostText, parseAllowedHost } from '@berth/contract/egress/allowed-hosts.ts'
import { hostPatternText, parseHostPattern } from '@berth/contract/egress/host-pattern.ts'
import { parsePrivateHost, privateHostText } from '@berth/contract/egress/private-hosts.ts'
import { BerthError } from '@berth/contract/errors.ts'
// The public suffix list, kept up to date with its releases.
import { getPublicSuffix } from 'tldts'
import type { SessionNetwork } from '../../../database/tables.ts'
import type { SelectProxy } from '../../proxies/proxy-service.ts'

/** The network settings of a new session, in canonical spelling and with proxies by id. Null if there are none. */
export async function selectNetwork(
  network: BrowserNetworkConfig | undefined,
  select: SelectProxy,
): Promise<SessionNetwork | null> {
  const { private_hosts, proxy_routes, allowed_hosts } = network ?? {}
  if (private_hosts === undefined && proxy_routes === undefined && allowed_hosts === undefined) return null
  return {
    ...(allowed_hosts && { allowed_hosts: selectAllowedHosts(allowed_hosts) }),
    ...(private_hosts && { private_hosts: unique(private_hosts.map(privateHost)) }),
    ...(proxy_routes && {
      proxy_routes: await Promise.all(
        proxy_routes.map(async ({ hosts, proxy }, index) => {
          const { id } = await select(proxy, `network.proxy_routes.${index}.proxy`)
          return { hosts: unique(hosts.map(routeHost)), proxy: { id } }
        }),
      ),
    }),
  }
}

/** In canonical spelling, without duplicates. */
export function selectAllowedHosts(entries: readonly string[]): string[] {
  return unique(entries.map(allowedHost))
}

function allowedHost(entry: string, index: number): string {
  const parsed = parseAllowedHost(entry)
  if (parsed.kind === 'pattern' && parsed.pattern.isWildcard && isPublicSuffix(parsed.pattern.name)) {
    const reason = `network.allowed_hosts.${index}: "*." must be followed by a name that is not a public suffix.`
    throw new BerthError('invalid_input', { reason })
  }
  return allowedHostText(parsed)
}

function privateHost(entry: string, index: number): string {
  const parsed = parsePrivateHost(entry)
  if (parsed.kind === 'pattern' && parsed.pattern.isWildcard && isPublicSuffix(parsed.pattern.name)) {
    const reason = `network.private_hosts.${index}: "*." must be followed by a name that is not a public suffix.`
    throw new BerthError('invalid_input', { reason })
  }
  return privateHostText(parsed)
}

/** Includes the suffixes that companies have registered, such as `github.io`: names below it belong to others. */
function isPublicSuffix(name: string): boolean {
  return getPublicSuffix(name, { allowPrivateDomains: true }) === name
}

function routeHost(text: string): string {
  const pattern = parseHostPattern(text)
  return pattern ? hostPatternText(pattern) : text
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)]
}
