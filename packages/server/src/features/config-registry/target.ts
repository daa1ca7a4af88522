import type { Target } from '@berth/contract/config-registry/config-registry.ts'
import { getDomain } from 'tldts'

/** What a URL is known by. Two spellings that a browser takes for one are one; query and fragment do not count. */
export function readTarget(text: string): Target & { readonly url: string } {
  const url = new URL(text)
  url.hash = ''
  const host = url.hostname.replace(/\.$/, '')
  const port = url.port === '' ? '' : `:${url.port}`
  return { url: url.href, domain: domainOf(host), host, normalized: `${url.protocol}//${host}${port}${url.pathname}` }
}

/** The text of a search; of a URL, its domain. */
export function readSearch(text: string): string {
  const url = /^https?:\/\//i.test(text.trim()) ? URL.parse(text) : null
  return url ? domainOf(url.hostname.replace(/\.$/, '')) : text.trim()
}

/** Sites of a host that gives names away (`name.github.io`) are sites of their own. An address is its own domain. */
export function domainOf(host: string): string {
  return getDomain(host, { allowPrivateDomains: true }) ?? host
}
