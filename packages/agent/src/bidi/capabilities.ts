interface Capabilities {
  readonly browserName?: unknown
}

/** As sent by clients, so not yet validated. */
interface CapabilitiesRequest {
  readonly alwaysMatch?: Capabilities | null
  readonly firstMatch?: readonly (Capabilities | null)[] | null
}

interface NewSessionResult {
  readonly capabilities: Readonly<Record<string, unknown>>
}

const browserNames: readonly unknown[] = [undefined, 'chrome', 'chromium']

/** Where a client also uses classic WebDriver, dialogs stay open until its commands handle them. */
export const capabilitiesBesideClassic = {
  capabilities: { alwaysMatch: { unhandledPromptBehavior: { default: 'ignore' } } },
} as const

/** Adds the capabilities that a client may omit, completely or in part. */
export function withCapabilities(params: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return { ...params, capabilities: params.capabilities ?? {} }
}

/** The browser name that makes a request impossible to match: every alternative asks for another browser. */
export function unmetBrowserName(params: Readonly<Record<string, unknown>>): string | undefined {
  const { alwaysMatch, firstMatch } = params.capabilities as CapabilitiesRequest
  const choices = Array.isArray(firstMatch) && firstMatch.length > 0 ? firstMatch : [{}]
  const names = choices.map((choice) => choice?.browserName ?? alwaysMatch?.browserName)
  return names.some((name) => browserNames.includes(name)) ? undefined : String(names[0])
}

/** The mapper leaves the session id and the browser name to its host. */
export function newSessionResult(sessionId: string, { capabilities }: NewSessionResult): object {
  const [, version] = /\/(\S+)/.exec(String(capabilities.browserName)) ?? []
  // Only the server knows the public address of the session.
  const { webSocketUrl: _, ...others } = capabilities
  return {
    sessionId,
    capabilities: { ...others, browserName: 'chrome', browserVersion: version ?? '', platformName: 'linux' },
  }
}
