/** The hosts that may receive secrets: each root allows itself and its subdomains. */
export class AllowedHosts {
  readonly roots: readonly string[]

  constructor(domains: readonly string[]) {
    this.roots = domains.map(rootOf).filter((root) => root !== undefined)
  }

  has(host: string): boolean {
    return this.roots.some((root) => host === root || host.endsWith(`.${root}`))
  }

  /**
   * The host of the URL if it is not allowed. A URL without a host, such as of a frame without an origin, is not
   * allowed either.
   */
  outside(url: string): string | undefined {
    const parsed = URL.canParse(url) ? new URL(url) : undefined
    if (!parsed || !['http:', 'https:'].includes(parsed.protocol)) return url.slice(0, 100) || 'null'
    return this.has(parsed.hostname) ? undefined : parsed.hostname
  }
}

/** As browsers write it: international names in ASCII. A bare top-level domain would allow far too much. */
function rootOf(domain: string): string | undefined {
  const bare = domain.trim().replace(/^(\*\.|www\.)+/i, '')
  const url = `http://${bare}`
  const host = bare !== '' && URL.canParse(url) ? new URL(url).hostname : undefined
  return host === '' ? undefined : host
}
