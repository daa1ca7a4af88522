import type { ListName } from '@berth/contract/dashboard/dashboard-endpoints.ts'

interface ListWords {
  readonly title: string
  readonly one: string
  readonly empty: string
}

/** Lists within other pages have their words there. */
export const lists: Readonly<Record<Exclude<ListName, 'vault-items' | 'deliveries'>, ListWords>> = {
  apps: { title: 'Apps', one: 'app', empty: 'No app is deployed.' },
  deployments: { title: 'Deployments', one: 'deployment', empty: 'No deployment.' },
  invocations: { title: 'Invocations', one: 'invocation', empty: 'No invocation.' },
  pools: { title: 'Pools', one: 'pool', empty: 'No pool. A pool keeps browsers ready.' },
  profiles: {
    title: 'Profiles',
    one: 'profile',
    empty: 'No profile. A profile keeps cookies and logins from one session to the next.',
  },
  proxies: { title: 'Proxies', one: 'proxy', empty: 'No proxy. Sessions reach the network directly.' },
  extensions: {
    title: 'Extensions',
    one: 'extension',
    empty: 'No extension. Upload a zip archive with a manifest.json, or add one by its page in the Chrome Web Store.',
  },
  connections: {
    title: 'Logins',
    one: 'connection',
    empty: 'No connection. A connection keeps a profile logged in to a site.',
  },
  credentials: { title: 'Credentials', one: 'credential', empty: 'No credential.' },
  providers: { title: 'Credential providers', one: 'provider', empty: 'No provider.' },
  vaults: { title: 'Vaults', one: 'vault', empty: 'No vault.' },
  'vault-providers': {
    title: 'Vault provider configs',
    one: 'vault provider config',
    empty: 'No config of a payment provider.',
  },
  projects: { title: 'Projects', one: 'project', empty: 'No project.' },
  'api-keys': { title: 'API keys', one: 'API key', empty: 'No key.' },
  webhooks: { title: 'Webhooks', one: 'webhook', empty: 'No webhook. Webhooks report events to your servers.' },
  otlp: { title: 'OTLP destinations', one: 'destination', empty: 'No destination. Telemetry stays in berth.' },
  audit: { title: 'Audit log', one: 'entry', empty: 'No entry in the last 30 days.' },
  'audit-exports': {
    title: 'Audit exports',
    one: 'export destination',
    empty: 'No destination. The audit log stays in berth.',
  },
}

export const columns = {
  age: 'Age',
  action: 'Action',
  actions: 'Actions',
  app: 'App',
  bucket: 'Bucket',
  checked: 'Checked',
  client: 'Client',
  deployment: 'Deployment',
  enabled: 'Enabled',
  endpoint: 'Endpoint',
  entrypoint: 'Entrypoint',
  events: 'Events',
  exit: 'Exit',
  expires: 'Expires',
  from: 'From',
  headers: 'Headers',
  id: 'Id',
  key: 'Key',
  lastExport: 'Last export',
  lastLogin: 'Last login',
  lastUsed: 'Last used',
  leased: 'Leased',
  name: 'Name',
  oneTimeCodes: 'One-time codes',
  profile: 'Profile',
  project: 'Project',
  provider: 'Provider',
  ready: 'Ready',
  reason: 'Reason',
  region: 'Region',
  request: 'Request',
  result: 'Result',
  site: 'Site',
  size: 'Size',
  started: 'Started',
  status: 'Status',
  time: 'Time',
  type: 'Type',
  url: 'URL',
  version: 'Version',
  who: 'Who',
}

export const actions = {
  newLinkConfig: 'New Link config',
  newAgentcardConfig: 'New Agentcard config',
  addFromTheStore: 'Add from the store',
  cancel: 'Cancel',
  check: 'Check',
  code: 'Code',
  deliveries: 'Deliveries',
  flush: 'Flush',
  items: 'Items',
  limits: 'Limits',
  logIn: 'Log in',
  rotate: 'Rotate',
  sendATest: 'Send a test',
  test: 'Test',
}

export const values = {
  cancelled: 'It is cancelled, and its sessions end.',
  flushed: 'Its ready browsers are being replaced.',
  works: 'It works.',
  worksNot: 'The check failed.',
  needsLogin: 'needs a login',
  never: 'never',
  yes: 'yes',
  no: 'no',
  testSent: 'A test event has been sent.',
  all: 'all',
  off: 'off',
  once: (secret: string) => `${secret}\n\nCopy it now: it is not shown again.`,
  hostedLogin: (url: string) => `${url}\n\nA person finishes the login there.`,
}
