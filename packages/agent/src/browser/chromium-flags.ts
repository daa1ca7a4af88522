import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { machinePorts } from '@berth/contract/agent/machine/machine-network.ts'
import type { Tabs } from './profile/user-data.ts'

interface Flag {
  readonly flag: string
  readonly reason: string
}

/** A port on which no program of a machine can listen. */
const nowhere = 'https://127.0.0.1:9'

const disabledFeatures: readonly string[] = [
  // The address bar's suggestions as pages of their own: they cost a renderer, 50 MB and 80 ms, and stand among the targets.
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'Translate', // No offer to translate above the page.
  'MediaRouter', // No search for television sets in the network.
  'OptimizationHints', // No call to Google for each page.
  'NetworkTimeServiceQuerying', // The same for the time of day.
  'HttpsUpgrades', // An address with http is loaded as it was given.
]

const enabledFeatures: readonly string[] = [
  'WebMCPTesting', // Pages may offer tools (document.modelContext) …
  'DevToolsWebMCPSupport', // … and we may use them, by the CDP domain WebMCP.
]

const always: readonly Flag[] = [
  { flag: '--remote-debugging-pipe', reason: "the agent's own line, which no client can take away" },
  { flag: '--enable-unsafe-extension-debugging', reason: 'extensions are loaded over the pipe, without a restart' },
  { flag: '--disable-quic', reason: 'UDP has no way out of the machine' },
  { flag: '--disable-component-update', reason: 'what leaves the machine is what a client asked for' },
  { flag: `--component-updater=url-source=${nowhere}`, reason: 'some components are asked for all the same' },
  { flag: `--gaia-url=${nowhere}`, reason: 'nor does Chromium itself ask who is logged in at Google' },
  { flag: '--disable-domain-reliability', reason: 'no reports of network errors' },
  { flag: '--disable-sync', reason: 'profiles are saved by berth, or not at all' },
  { flag: '--no-first-run', reason: 'no welcome page' },
  { flag: '--no-default-browser-check', reason: 'no question at the first start' },
  {
    flag: '--password-store=basic',
    reason: 'there is no keyring to ask, and cookies of a profile open on every machine',
  },
  { flag: '--hide-crash-restore-bubble', reason: 'after a crash the first page is free of questions' },
  { flag: '--noerrdialogs', reason: 'a dialog of the browser would wait for a person' },
  { flag: '--disable-hang-monitor', reason: 'the same: a page that computes for long is not asked about' },
  { flag: '--disable-prompt-on-repost', reason: 'the same: reloading a form asks nothing' },
  { flag: '--keep-alive-for-test', reason: 'a client that closes the last page does not end the browser of all' },
  { flag: '--disable-backgrounding-occluded-windows', reason: 'pages work at full speed although nobody looks' },
  { flag: '--disable-renderer-backgrounding', reason: 'the same for tabs behind the first' },
  { flag: '--disable-background-timer-throttling', reason: 'the same' },
  { flag: '--disable-blink-features=AutomationControlled', reason: 'pages are served as to any browser' },
  { flag: '--test-type', reason: 'no bar across the page that warns of some of these flags' },
  { flag: `--enable-features=${enabledFeatures.join(',')}`, reason: 'each has its own, above' },
  { flag: `--disable-features=${disabledFeatures.join(',')}`, reason: 'each has its own, above' },
]

const withoutGpu: readonly Flag[] = [
  { flag: '--disable-gpu', reason: 'there is none, and looking for one takes time' },
  { flag: '--enable-unsafe-swiftshader', reason: 'pages draw with WebGL all the same, on the processor' },
]

const withoutPolicies: readonly Flag[] = [
  // With it Chromium installs nothing that a policy names.
  { flag: '--disable-background-networking', reason: 'what leaves the machine is what a client asked for' },
]

export interface FlagOptions {
  readonly config: AgentConfig
  readonly userDataFolder: string
  readonly tabs: Tabs
  readonly needPolicies: boolean
}

/** Every argument of Chromium. */
export function chromiumFlags({ config, userDataFolder, tabs, needPolicies }: FlagOptions): string[] {
  const flags = [...always, ...(config.gpu ? [] : withoutGpu), ...(needPolicies ? [] : withoutPolicies)]
  return [
    ...flags.map(({ flag }) => flag),
    `--user-data-dir=${userDataFolder}`,
    `--remote-debugging-port=${machinePorts.chromium}`,
    ...(config.headless ? headlessFlags(config) : []),
    ...(config.kiosk_mode && !config.headless ? ['--kiosk'] : []),
    // An address would be opened besides the tabs of the last run.
    ...(tabs === 'blank' ? ['about:blank'] : []),
  ]
}

/** In full-screen mode the page alone fills the window; otherwise a headless window has a tab strip too. */
function headlessFlags({ stealth, viewport: { width, height } }: AgentConfig): readonly string[] {
  // Chromium in headless mode says so in its user agent, and a user agent of ours would empty the client hints. The
  // full browser on a headless screen is the same as any other.
  if (stealth)
    return ['--ozone-platform=headless', `--ozone-override-screen-size=${width},${height}`, '--start-fullscreen']
  return ['--headless', `--screen-info={${width}x${height}}`, '--start-fullscreen']
}
