/** Groups of tools that an operator can disable. */
export const toolsets = [
  ...(['profiles', 'docs', 'browsers', 'projects', 'api_keys', 'browser_pools', 'browser_curl', 'proxies'] as const),
  ...(['extensions', 'apps', 'computer', 'shell', 'playwright', 'replays', 'auth_connections', 'credentials'] as const),
  ...(['credential_providers', 'page'] as const),
] as const
export type Toolset = (typeof toolsets)[number]

const aliases: Readonly<Record<string, Toolset>> = {
  computer_action: 'computer',
  exec_command: 'shell',
  execute_playwright_code: 'playwright',
  search_docs: 'docs',
}

/**
 * Parses a list of toolsets separated by commas or spaces. Accepts names of tools, hyphens and the prefix `manage_`,
 * and `all` and `none`. Throws an Error that names unknown ones.
 */
export function parseToolsets(text: string): ReadonlySet<Toolset> {
  const names = text.split(/[\s,]+/).filter(Boolean)
  if (names.includes('all')) return new Set(toolsets)
  return new Set(names.filter((name) => name !== 'none').map(toolsetOf))
}

function toolsetOf(given: string): Toolset {
  const name = given
    .toLowerCase()
    .replaceAll('-', '_')
    .replace(/^manage_/, '')
  const found = aliases[name] ?? toolsets.find((toolset) => toolset === name)
  if (!found) throw new Error(`unknown toolset ${given}; there are: ${toolsets.join(', ')}`)
  return found
}
