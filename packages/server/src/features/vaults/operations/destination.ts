import { getDomain } from 'tldts'

export interface Destination {
  /** The permitted hosts of the item. Null if it has no list. */
  readonly allowedDomains: readonly string[] | null
  readonly pageUrl: string
  /** The origins of the elements' documents. */
  readonly origins: readonly string[]
}

/** Why values must not be filled in there. Undefined if they may be. */
export function denialOf({ allowedDomains, pageUrl, origins }: Destination): string | undefined {
  const page = webUrl(pageUrl)
  if (!page) return 'the page is not a web page'
  for (const origin of origins) {
    const frame = webUrl(origin)
    if (!frame) return 'an element is in a frame without an origin'
    if (page.protocol === 'https:' && frame.protocol !== 'https:') return `${frame.origin} is not encrypted`
    if (!allowedDomains && !isSameSite(page.hostname, frame.hostname)) {
      return `${frame.hostname} is a frame of another site than ${page.hostname}, and the item has no allowed_domains`
    }
  }
  if (!allowedDomains) return undefined
  const hosts = [page.hostname, ...origins.map((origin) => new URL(origin).hostname)]
  const denied = hosts.find((host) => !allowedDomains.some((domain) => isWithin(host, hostOf(domain))))
  return denied === undefined ? undefined : `${denied} is not in the allowed_domains of the item`
}

function webUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url && ['http:', 'https:'].includes(url.protocol) ? url : undefined
}

function isSameSite(one: string, other: string): boolean {
  if (one === other) return true
  const domain = getDomain(one, { allowPrivateDomains: true })
  return domain !== null && domain === getDomain(other, { allowPrivateDomains: true })
}

function isWithin(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`)
}

/** In the spelling of browsers: international names in their ASCII form. */
function hostOf(domain: string): string {
  const url = `http://${domain}`
  return URL.canParse(url) ? new URL(url).hostname : domain
}
