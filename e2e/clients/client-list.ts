/** The host name of the test site in sessions. */
export const siteHost = 'host.berth.internal'

/** Packages of one registry with their versions. */
export type Packages = Readonly<Record<string, string>>

export interface Client {
  /** The name of the client and of its row. */
  readonly name: string
  /** The tested version, which is also part of its packages. */
  readonly version: string
  readonly runtime: 'node' | 'python' | 'go'
  readonly packages: Packages
  /** Relative to this folder. */
  readonly program: string
  /** What the program does, for the table. */
  readonly tried: string
  /** Without a session, the program creates its own. */
  readonly needsSession: boolean
  readonly headless?: boolean
}

const hosts = 'a host of MCP: lists and calls tools over HTTP'
const mcp = { '@modelcontextprotocol/sdk': '1.32.2' }

function node(name: string, version: string, program: string, tried: string, others: Packages = {}): Client {
  const packages = { [name]: version, ...others }
  return { name, version, runtime: 'node', packages, program, tried, needsSession: true }
}

function python(name: string, version: string, program: string, tried: string): Client {
  return { name, version, runtime: 'python', packages: { [name]: version }, program, tried, needsSession: true }
}

function go(module: string, version: string, program: string, tried: string): Client {
  return { name: module, version, runtime: 'go', packages: { [module]: version }, program, tried, needsSession: true }
}

const drive = 'connects by ws and by http, fills in and sends a form'

export const clients: readonly Client[] = [
  {
    ...node(
      '@onkernel/sdk',
      '0.84.0',
      'onkernel-sdk/try.mjs',
      'creates, finds, controls, and deletes a session; telemetry',
    ),
    needsSession: false,
  },
  {
    ...python(
      'kernel',
      '0.131.0',
      'kernel/try.py',
      'creates, finds, controls, and deletes a session; telemetry; config registry; searches; vaults; logins',
    ),
    needsSession: false,
  },
  ...[
    node(
      '@modelcontextprotocol/inspector',
      '2.12.0',
      'mcp-inspector/try.mjs',
      'its command line: lists and calls tools',
    ),
    node(
      '@modelcontextprotocol/conformance',
      '0.1.16',
      'mcp-conformance/try.mjs',
      'the scenarios of the protocol that need no tools of the suite',
    ),
    node('@langchain/mcp-adapters', '1.1.4', 'langchain-mcp/try.mjs', hosts, {
      '@langchain/core': '1.4.0',
      '@langchain/langgraph': '1.7.3',
    }),
    node('@ai-sdk/mcp', '2.0.99', 'ai-sdk-mcp/try.mjs', hosts, { zod: '4.6.7' }),
  ].map((client) => ({ ...client, needsSession: false })),
  ...['1.65.1', '1.52.0', '1.44.1'].map((version) => node('playwright-core', version, 'playwright/try.mjs', drive)),
  node('puppeteer-core', '25.16.0', 'puppeteer/try.mjs', `${drive}; BiDi`),
  // Its http form drops the query, and its BiDi uses event names of an older draft.
  node('puppeteer-core', '22.15.0', 'puppeteer/try-ws.mjs', 'connects by ws, fills in and sends a form'),
  node(
    'chrome-remote-interface',
    '0.34.0',
    'chrome-remote-interface/try.mjs',
    'connects by its defaults, and with `local`',
  ),
  node(
    'selenium-webdriver',
    '4.49.0',
    'selenium-webdriver/try.mjs',
    '`usingServer`: fills in and sends a form; BiDi; CDP',
  ),
  python('selenium', '4.51.0', 'selenium/try.py', '`webdriver.Remote`: fills in and sends a form; BiDi; CDP'),
  node('webdriverio', '9.33.1', 'webdriverio/try.mjs', '`remote`: fills in and sends a form; BiDi; Puppeteer', {
    'puppeteer-core': '24.43.1',
  }),
  python('vibium', '26.8.21', 'vibium/try.py', '`webdriver_ws_url`: fills in and sends a form, screenshot'),
  node(
    '@playwright/mcp',
    '0.0.83',
    'playwright-mcp/try.mjs',
    'tools over ws and http: navigate, type, click, snapshot',
    mcp,
  ),
  node(
    'chrome-devtools-mcp',
    '1.11.0',
    'chrome-devtools-mcp/try.mjs',
    'tools over ws and http: navigate, snapshot, network, trace',
    mcp,
  ),
  node('agent-browser', '0.41.2', 'agent-browser/try.mjs', '`--cdp` with ws: fills in and sends a form'),
  {
    ...node('stagehand', '3.7.2', 'stagehand-3/try.mjs', 'pages and locators, without a model'),
    packages: { stagehand: 'npm:@browserbasehq/stagehand@3.7.2' },
    name: '@browserbasehq/stagehand',
  },
  node(
    '@browserbasehq/stagehand',
    '4.4.0',
    'stagehand-4/try.mjs',
    '`localBrowser.connect`: pages and locators, without a model',
  ),
  python('browser-use', '0.13.14', 'browser-use/try.py', 'an agent on a local server that stands in for the model'),
  python('crawl4ai', '0.9.5', 'crawl4ai/try.py', 'ws and http: Markdown, screenshot, PDF'),
  node('crawlee', '3.18.1', 'crawlee/try.mjs', '`PlaywrightCrawler` follows a link', {
    'playwright-core': '1.65.1',
    playwright: '1.65.1',
  }),
  node('lighthouse', '13.5.0', 'lighthouse/try.mjs', 'audits a page through Puppeteer', {
    'puppeteer-core': '25.16.0',
  }),
  go(
    'github.com/chromedp/chromedp',
    'v0.23.0',
    'chromedp/main.go',
    'ws and http: fills in and sends a form, screenshot',
  ),
  go('github.com/go-rod/rod', 'v0.116.2', 'rod/main.go', 'ws and http: fills in and sends a form, screenshot'),
]
