/** Hosts, with their subdomains, where values may be entered for every site: the usual identity providers. */
const identityProviders = [
  'accounts.google.com',
  'login.microsoftonline.com',
  'login.live.com',
  'okta.com',
  'oktapreview.com',
  'auth0.com',
  'appleid.apple.com',
  'github.com',
  'www.facebook.com',
  'www.linkedin.com',
  'amazoncognito.com',
  'onelogin.com',
  'pingone.com',
  'pingidentity.com',
]

const maxHosts = 200

interface Restricted {
  readonly domain: string
  readonly login_url: string | null
  readonly allowed_domains: readonly string[] | null
}

/** The domains in which a flow enters values. `ledTo` is used only if the connection has no list. */
export function allowedFor({ domain, login_url, allowed_domains }: Restricted, ledTo: readonly string[]): string[] {
  const loginHost = login_url === null ? '' : (URL.parse(login_url)?.hostname ?? '')
  const more = isRestricted({ allowed_domains }) ? (allowed_domains ?? []) : [loginHost, ...ledTo]
  return [...new Set([domain, ...more, ...identityProviders].filter(Boolean))].slice(0, maxHosts)
}

/** Without a list, a login may lead anywhere. */
export function isRestricted({ allowed_domains }: Pick<Restricted, 'allowed_domains'>): boolean {
  return allowed_domains !== null && allowed_domains.length > 0
}
