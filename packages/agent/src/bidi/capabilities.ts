interface Capabilities {
  readonly browserName?: unknown
}

/** As clients send it: nothing is certain. */
interface CapabilitiesRequest {
  readonly alwaysMatch?: Capabilities | null
  readonly firstMatch?: readonly (Capabilities | null)[] | null
}

interface NewSessionResult {
  readonly capabilities: Readonly<Record<string, unknown>>
}

const browserNames: readonly unknown[] = [undefined, 'chrome', 'chromium']

/** Where a client speaks classic WebDriver too, dialogs wait for its commands. */
export const capabilitiesBesideClassic = {
  capabilities: { alwaysMatch: { unhandledPromptBehavior: { default: 'ignore' } } },
} as const

/** The parameters with the capabilities that a client may leave out, all of them or a part. */
export function withCapabilities(params: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return { ...params, capabilities: params.capabilities ?? {} }
}

/** The name that keeps a request from being met: every way to meet it asks for another browser. */
export function unmetBrowserName(params: Readonly<Record<string, unknown>>): string | undefined {
  const { alwaysMatch, firstMatch } = params.capabilities as CapabilitiesRequest
  const choices = Array.isArray(firstMatch) && firstMatch.length > 0 ? firstMatch : [{}]
  const names = choices.map((choice) => choice?.browserName ?? alwaysMatch?.browserName)
  return names.some((name) => browserNames.includes(name)) ? undefined : String(names[0])
}

/** The mapper leaves the id of a session, and how the browser is called, to whoever runs it. */
export function newSessionResult(sessionId: string, { capabilities }: NewSessionResult): object {
  const [, version] = /\/(\S+)/.exec(String(capabilities.browserName)) ?? []
  // The address of the session is the one that the client came by; nobody in here knows it.
  const { webSocketUrl: _, ...others } = capabilities
  return {
    sessionId,
    capabilities: { ...others, browserName: 'chrome', browserVersion: version ?? '', platformName: 'linux' },
  }
}
