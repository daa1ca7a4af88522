import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'

interface Flag {
  readonly flag: string
  readonly reason: string
}

const always: readonly Flag[] = [
  { flag: '--remote-debugging-pipe', reason: "the agent's own line, which no client can take away" },
  { flag: '--remote-allow-origins=*', reason: 'clients may send an Origin; who may connect is decided by their token' },
  { flag: '--enable-unsafe-extension-debugging', reason: 'extensions are loaded over the pipe, without a restart' },
  { flag: '--proxy-bypass-list=<-loopback>', reason: 'loopback addresses too go to egress, which refuses them' },
  {
    flag: '--webrtc-ip-handling-policy=disable_non_proxied_udp',
    reason: 'WebRTC must not look for ways past the proxy',
  },
  { flag: '--disable-quic', reason: 'UDP has no way out of the machine' },
  { flag: '--no-first-run', reason: 'no welcome page' },
  { flag: '--no-default-browser-check', reason: 'no question at the first start' },
  { flag: '--password-store=basic', reason: 'there is no keyring to ask' },
  { flag: '--use-mock-keychain', reason: 'the same' },
  { flag: '--disable-background-networking', reason: 'no calls to the maker of the browser' },
  { flag: '--disable-component-update', reason: 'the same' },
  { flag: '--disable-domain-reliability', reason: 'the same' },
  { flag: '--disable-sync', reason: 'the same' },
  { flag: '--metrics-recording-only', reason: 'the same' },
  { flag: '--disable-breakpad', reason: 'no crash reports leave, and no handler process stays' },
  { flag: '--disable-crash-reporter', reason: 'the same' },
  { flag: '--hide-crash-restore-bubble', reason: 'after a crash the first page is free of questions' },
  { flag: '--noerrdialogs', reason: 'a dialog of the browser would wait for a person' },
  { flag: '--disable-blink-features=AutomationControlled', reason: 'pages are served as to any browser' },
  {
    flag: '--disable-features=Translate,MediaRouter,OptimizationHints,WebUIOmniboxPopup',
    reason: 'no offers, no local network search, no page of the browser among the targets',
  },
  { flag: '--disable-backgrounding-occluded-windows', reason: 'pages work at full speed although nobody looks' },
  { flag: '--disable-renderer-backgrounding', reason: 'the same' },
  { flag: '--disable-background-timer-throttling', reason: 'the same' },
]

const withoutGpu: readonly Flag[] = [{ flag: '--disable-gpu', reason: 'there is none, and looking for one takes time' }]

const headlessOnly: readonly Flag[] = [
  { flag: '--headless', reason: 'no display' },
  { flag: '--disable-software-rasterizer', reason: 'saves a process and the time of its start' },
  { flag: '--kiosk', reason: 'a headless window has a tab strip too: in kiosk mode the page alone fills it' },
]

/** Every argument of Chromium. `devtoolsPort` and `proxyPort` are on the loopback of the machine. */
export function chromiumFlags(
  config: AgentConfig,
  profileFolder: string,
  proxyPort: number,
  userAgent: string | undefined,
): string[] {
  const { width, height } = config.viewport
  const flags = [...always, ...(config.gpu ? [] : withoutGpu), ...(config.headless ? headlessOnly : [])].map(
    ({ flag }) => flag,
  )
  flags.push(
    `--user-data-dir=${profileFolder}`,
    `--remote-debugging-port=${config.devtools_port}`,
    `--proxy-server=http://127.0.0.1:${proxyPort}`,
    `--window-size=${width},${height}`,
    '--window-position=0,0',
  )
  if (config.headless) flags.push(`--screen-info={${width}x${height}}`)
  else flags.push(config.kiosk_mode ? '--kiosk' : '--start-maximized')
  if (userAgent !== undefined) flags.push(`--user-agent=${userAgent}`)
  return [...flags, 'about:blank']
}
