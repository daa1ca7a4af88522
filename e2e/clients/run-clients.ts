import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Berth } from '../testing/berth.ts'
import { startPages } from '../testing/pages.ts'
import { startSearxng } from '../testing/servers/searxng.ts'
import { type Client, clients, siteHost } from './client-list.ts'
import { type ClientResult, writeTable } from './clients-table.ts'
import { cacheFolder, installClient, Skipped } from './install-client.ts'
import { LoopbackOnly } from './loopback-only.ts'
import { startModel } from './stand-in-model.ts'

const programLimitMilliseconds = 3 * 60 * 1000

interface RunClientsOptions {
  /** Parts of names of clients, or of their programs. When empty, all clients run. */
  readonly names: readonly string[]
  readonly onBegin: (client: Client) => void
  readonly onResult: (result: ClientResult) => void
}

/** Runs programs of real clients against a berth server, and writes the table of docs/clients.md. */
export async function runClients({ names, onBegin, onResult }: RunClientsOptions): Promise<readonly ClientResult[]> {
  const chosen = clients.filter(
    ({ name, program }) => names.length === 0 || names.some((part) => name.includes(part) || program.includes(part)),
  )
  await using pages = await startPages()
  for (const [path, content] of Object.entries(site)) pages.serve(path, content)
  await using searxng = await startSearxng()
  searxng.hits = [{ url: `http://${siteHost}:${pages.port}/`, title: 'Form', content: 'A form' }]
  const environment = { BERTH_EGRESS_ALLOW: `${siteHost}:${pages.port}`, BERTH_SEARCH_SEARXNG_URL: searxng.url }
  await using berth = await Berth.start({ environment })
  await using model = await startModel()
  const outside = await LoopbackOnly.open([Number(new URL(berth.url).port), model.port])

  const results: ClientResult[] = []
  for (const client of chosen) {
    onBegin(client)
    const shared = { BERTH_URL: berth.url, SITE: `http://${siteHost}:${pages.port}`, MODEL_URL: model.url }
    const result = await tryClient(client, berth, outside, shared)
    onResult(result)
    results.push(result)
  }
  await outside.close()
  await writeTable(results, clients)
  return results
}

const site = {
  '/login': `<!doctype html><title>Log in</title><h1>Log in</h1>
<form onsubmit="document.cookie = 'session=1'; location.href = '/account'; return false">
<label for="u">Email</label><input id="u" name="user" type="email" autocomplete="username">
<label for="p">Password</label><input id="p" name="password" type="password" autocomplete="current-password">
<button>Log in</button></form>`,
  '/account': '<!doctype html><title>Account</title><h1>Your account</h1><a href="/logout">Log out</a>',
  '/': `<!doctype html><title>Form</title><h1>A form</h1><p>Nothing is sent.</p><a href="/second">Second page</a>
<p>${'It is as long as pages are: some clients take a short one for a refusal. '.repeat(20)}</p>
<form onsubmit="document.title = this.q.value; return false"><input id="q" name="q" aria-label="Text"><button id="send">Send</button></form>`,
  '/second': '<!doctype html><title>Second</title><h1>The second page</h1>',
  '/favicon.ico': '',
}

async function tryClient(
  client: Client,
  berth: Berth,
  outside: LoopbackOnly,
  shared: Readonly<Record<string, string>>,
): Promise<ClientResult> {
  let command: readonly string[]
  try {
    command = await installClient(client)
  } catch (error) {
    const reason =
      error instanceof Skipped ? error.message : `it cannot be installed: ${lastLines((error as Error).message)}`
    return { client, outcome: error instanceof Skipped ? 'skipped' : 'failed', reason }
  }
  const api = await berth.client()
  const session = client.needsSession
    ? await api.browsers.create({ headless: client.headless ?? true, timeout_seconds: 300 })
    : undefined
  try {
    const environment = { ...(await programEnvironment(berth)), ...shared, ...(session && sessionEnvironment(session)) }
    const { exitCode, output } = await outside.run(command, environment, programLimitMilliseconds)
    if (exitCode === 0) return { client, outcome: 'passed', reason: '' }
    const how = exitCode === undefined ? 'it took too long' : `exit code ${exitCode}`
    return { client, outcome: 'failed', reason: `${how}\n${lastLines(output)}` }
  } finally {
    if (session) await api.browsers.deleteByID(session.session_id).catch(() => {}) // Some programs delete it themselves.
  }
}

/** A home folder in the cache, for the files that clients write. */
async function programEnvironment({ apiKey }: Berth): Promise<Readonly<Record<string, string>>> {
  const home = join(cacheFolder, 'home')
  await mkdir(home, { recursive: true })
  return {
    ...{ PATH: process.env.PATH ?? '', HOME: home, LANG: 'C.UTF-8', BERTH_API_KEY: apiKey, CI: '1' },
    ...{ ANONYMIZED_TELEMETRY: 'false', BROWSER_USE_LOGGING_LEVEL: 'warning' },
  }
}

interface SessionAddresses {
  readonly session_id: string
  readonly cdp_ws_url: string
  readonly webdriver_ws_url: string
}

function sessionEnvironment({ session_id, cdp_ws_url, webdriver_ws_url }: SessionAddresses) {
  return {
    SESSION_ID: session_id,
    CDP_WS_URL: cdp_ws_url,
    CDP_HTTP_URL: cdp_ws_url.replace(/^ws/, 'http'),
    WEBDRIVER_WS_URL: webdriver_ws_url,
    WEBDRIVER_HTTP_URL: webdriver_ws_url.replace(/^ws/, 'http'),
    TOKEN: new URL(cdp_ws_url).searchParams.get('jwt') ?? '',
  }
}

function lastLines(output: string): string {
  return output.trimEnd().split('\n').slice(-40).join('\n')
}
