/** URLPattern syntax: `https://*.example.com/shop/*`. A single star matches every page. */
export function matchesUrl(patterns: readonly string[], url: string): boolean {
  return patterns.some((pattern) => parsePattern(pattern)?.test(url))
}

export function isUrlPattern(pattern: string): boolean {
  return parsePattern(pattern) !== undefined
}

function parsePattern(pattern: string): URLPattern | undefined {
  try {
    return pattern === '*' ? new URLPattern({}) : new URLPattern(pattern)
  } catch {
    return undefined
  }
}
