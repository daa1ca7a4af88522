/** The hosts that secrets may go to: roots, each of which allows itself and what is below it. */
export class AllowedHosts {
  readonly roots: readonly string[]

  constructor(domains: readonly string[]) {
    this.roots = domains.map(rootOf).filter((root) => root !== undefined)
  }

  has(host: string): boolean {
    return this.roots.some((root) => host === root || host.endsWith(`.${root}`))
  }

  /** The host of the URL where that is outside. What has no host, such as a frame without an origin, is outside too. */
  outside(url: string): string | undefined {
    const parsed = URL.canParse(url) ? new URL(url) : undefined
    if (!parsed || !['http:', 'https:'].includes(parsed.protocol)) return url.slice(0, 100) || 'null'
    return this.has(parsed.hostname) ? undefined : parsed.hostname
  }
}

/** As browsers write it: names of other scripts in their ASCII form. A bare top-level name would allow far too much. */
function rootOf(domain: string): string | undefined {
  const bare = domain.trim().replace(/^(\*\.|www\.)+/i, '')
  const url = `http://${bare}`
  const host = bare !== '' && URL.canParse(url) ? new URL(url).hostname : undefined
  return host === '' ? undefined : host
}
