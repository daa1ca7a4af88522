import type { Target } from '@berth/contract/config-registry/config-registry.ts'
import { getDomain } from 'tldts'

/**
 * Identifies the target of a URL. Spellings that a browser treats as equal are equal. Query and fragment are ignored.
 */
export function readTarget(text: string): Target & { readonly url: string } {
  const url = new URL(text)
  url.hash = ''
  const host = url.hostname.replace(/\.$/, '')
  const port = url.port === '' ? '' : `:${url.port}`
  return { url: url.href, domain: domainOf(host), host, normalized: `${url.protocol}//${host}${port}${url.pathname}` }
}

/** The text to search for. For a URL, its domain. */
export function readSearch(text: string): string {
  const url = /^https?:\/\//i.test(text.trim()) ? URL.parse(text) : null
  return url ? domainOf(url.hostname.replace(/\.$/, '')) : text.trim()
}

/** Sites below a host that assigns names to others (`name.github.io`) are separate. An address is its own domain. */
export function domainOf(host: string): string {
  return getDomain(host, { allowPrivateDomains: true }) ?? host
}
