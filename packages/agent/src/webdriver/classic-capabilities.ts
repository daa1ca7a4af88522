import { WebDriverError } from './webdriver-error.ts'

type Capabilities = Readonly<Record<string, unknown>>

/** The names of the running browser; chromedriver itself knows only the first. */
const browserNames: readonly unknown[] = ['chrome', 'chromium']

/** Proxy settings that do not change the session's network. */
const neutralProxies: readonly unknown[] = [undefined, 'direct', 'system', 'autodetect']

/**
 * The parameters of `POST /session` for chromedriver: attached to the running browser, and without BiDi, which the
 * agent serves itself. Options for launching a browser are left out.
 */
export function attachedCapabilities(parameters: unknown, devToolsPort: number): object {
  const { capabilities } = objectOf(parameters, 'the body')
  const { alwaysMatch, firstMatch } = objectOf(capabilities, 'capabilities')
  if (firstMatch !== undefined && (!Array.isArray(firstMatch) || firstMatch.length === 0)) {
    throw new WebDriverError('invalid argument', 'capabilities.firstMatch must be an array with at least one entry')
  }
  const always = attached(objectOf(alwaysMatch ?? {}, 'capabilities.alwaysMatch'))
  const choices = (firstMatch ?? [{}]) as readonly unknown[]
  const address = { 'goog:chromeOptions': { debuggerAddress: `127.0.0.1:${devToolsPort}` } }
  return {
    capabilities: {
      alwaysMatch: { ...always, ...address },
      firstMatch: choices.map((choice, index) => attached(objectOf(choice, `capabilities.firstMatch[${index}]`))),
    },
  }
}

function attached(wished: Capabilities): Capabilities {
  const { webSocketUrl: _bidi, 'goog:chromeOptions': _options, setWindowRect: _always, ...kept } = wished
  const proxy = objectOf(kept.proxy ?? {}, 'proxy')
  if (!neutralProxies.includes(proxy.proxyType)) {
    throw new WebDriverError(
      'session not created',
      'proxy: the session has its own proxy settings; PATCH /browsers/{id} changes them',
    )
  }
  return { ...kept, ...(browserNames.includes(kept.browserName) && { browserName: 'chrome' }) }
}

/**
 * The capabilities for the client: without the address inside the machine, but with the keys by which clients recognize
 * Chrome.
 */
export function clientCapabilities(capabilities: Capabilities): Capabilities {
  return { ...capabilities, 'goog:chromeOptions': {}, platformName: 'linux', setWindowRect: true }
}

function objectOf(value: unknown, name: string): Capabilities {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Capabilities
  throw new WebDriverError('invalid argument', `${name} must be an object`)
}
