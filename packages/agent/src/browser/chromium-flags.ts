import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { machinePorts } from '@berth/contract/agent/machine/machine-network.ts'
import type { Tabs } from './profile/user-data.ts'

interface Flag {
  readonly flag: string
  readonly reason: string
}

/** A port on which no program in a machine can listen. */
const unusedOrigin = 'https://127.0.0.1:9'

const disabledFeatures: readonly string[] = [
  // Address bar suggestions as separate pages: they cost a renderer, 50 MB and 80 ms, and appear among the targets.
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'Translate', // No translation prompt above the page.
  'MediaRouter', // No discovery of media devices on the network.
  'OptimizationHints', // No request to Google for each page.
  'NetworkTimeServiceQuerying', // No request to Google for the time.
  'HttpsUpgrades', // Load http addresses as given.
]

const enabledFeatures: readonly string[] = [
  'WebMCPTesting', // Allows pages to offer tools (document.modelContext) …
  'DevToolsWebMCPSupport', // … and lets us call them with the CDP domain WebMCP.
]

const always: readonly Flag[] = [
  { flag: '--remote-debugging-pipe', reason: "the agent's own connection, which clients cannot close" },
  { flag: '--enable-unsafe-extension-debugging', reason: 'extensions are loaded over the pipe, without a restart' },
  { flag: '--disable-quic', reason: 'UDP is blocked in the machine' },
  { flag: '--disable-component-update', reason: 'only requests of clients leave the machine' },
  { flag: `--component-updater=url-source=${unusedOrigin}`, reason: 'some components are requested regardless' },
  { flag: `--gaia-url=${unusedOrigin}`, reason: 'Chromium does not ask Google who is logged in' },
  { flag: '--disable-domain-reliability', reason: 'no reports of network errors' },
  { flag: '--disable-sync', reason: 'profiles are saved by berth, or not at all' },
  { flag: '--no-first-run', reason: 'no welcome page' },
  { flag: '--no-default-browser-check', reason: 'no prompt at the first start' },
  {
    flag: '--password-store=basic',
    reason: 'there is no keyring, and every machine can decrypt the cookies of a profile',
  },
  { flag: '--hide-crash-restore-bubble', reason: 'no prompt above the first page after a crash' },
  { flag: '--noerrdialogs', reason: 'a dialog of the browser would wait for a person' },
  { flag: '--disable-hang-monitor', reason: 'the same: no prompt about a busy page' },
  { flag: '--disable-prompt-on-repost', reason: 'the same: no prompt when a form is reloaded' },
  { flag: '--keep-alive-for-test', reason: 'closing the last page does not end the shared browser' },
  { flag: '--disable-backgrounding-occluded-windows', reason: 'hidden windows run at full speed' },
  { flag: '--disable-renderer-backgrounding', reason: 'the same for background tabs' },
  { flag: '--disable-background-timer-throttling', reason: 'the same' },
  { flag: '--disable-blink-features=AutomationControlled', reason: 'sites treat the browser like any other' },
  { flag: '--test-type', reason: 'no infobar that warns of some of these flags' },
  { flag: `--enable-features=${enabledFeatures.join(',')}`, reason: 'each has its own, above' },
  { flag: `--disable-features=${disabledFeatures.join(',')}`, reason: 'each has its own, above' },
]

const withoutGpu: readonly Flag[] = [
  { flag: '--disable-gpu', reason: 'there is none, and looking for one takes time' },
  { flag: '--enable-unsafe-swiftshader', reason: 'WebGL works without a GPU, on the processor' },
]

const withoutPolicies: readonly Flag[] = [
  // With it Chromium does not install extensions that a policy names.
  { flag: '--disable-background-networking', reason: 'only requests of clients leave the machine' },
]

export interface FlagOptions {
  readonly config: AgentConfig
  readonly userDataFolder: string
  readonly tabs: Tabs
  readonly needPolicies: boolean
}

/** All arguments of Chromium. */
export function chromiumFlags({ config, userDataFolder, tabs, needPolicies }: FlagOptions): string[] {
  const flags = [...always, ...(config.gpu ? [] : withoutGpu), ...(needPolicies ? [] : withoutPolicies)]
  return [
    ...flags.map(({ flag }) => flag),
    `--user-data-dir=${userDataFolder}`,
    `--remote-debugging-port=${machinePorts.chromium}`,
    ...(config.headless ? headlessFlags(config) : []),
    ...(config.kiosk_mode && !config.headless ? ['--kiosk'] : []),
    // An address would be opened in addition to the restored tabs.
    ...(tabs === 'blank' ? ['about:blank'] : []),
  ]
}

/** In full-screen mode only the page fills the window; otherwise a headless window also has a tab strip. */
function headlessFlags({ stealth, viewport: { width, height } }: AgentConfig): readonly string[] {
  // Chromium's headless mode identifies itself in the user agent, and a custom user agent would empty the client hints.
  // The full browser on a headless screen looks like any other.
  if (stealth)
    return ['--ozone-platform=headless', `--ozone-override-screen-size=${width},${height}`, '--start-fullscreen']
  return ['--headless', `--screen-info={${width}x${height}}`, '--start-fullscreen']
}
