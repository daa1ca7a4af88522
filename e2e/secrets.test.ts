import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir, readFile, realpath } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import Kernel from '@onkernel/sdk'
import pg from 'pg'
import { HostView } from './fault/testing/holdings.ts'
import { until } from './fault/testing/until.ts'
import { Berth, oneServerOnly } from './testing/berth.ts'
import { hostName, startPages } from './testing/pages.ts'
import { listProcesses } from './testing/processes.ts'

/*
 * Stores and uses recognizable secrets, in valid and invalid requests, with all logs enabled. Then searches for them
 * wherever they must not appear.
 */

const planted = {
  'a value of a credential': 'planted-Value-7Qx2mB9',
  'a changed value': 'planted-Changed-4Kd8wZ1',
  'a TOTP secret': 'PLANTEDTOTPSECRET7XK4',
  'a token of a provider': 'planted-ProviderToken-9Rt3',
  'a rotated token of a provider': 'planted-RotatedToken-2Lm6',
  'a value of a vault item': 'planted-VaultValue-3Wq8nH',
  'a changed value of a vault item': 'planted-VaultChanged-6Tz1rL',
  'a value that was collected': 'planted-Collected-9Xe5uM',
  'a seed of a vault item': 'PLANTEDVAULTSEED5QW7',
  'a secret of a vault provider': 'planted-VaultSecret-2Gc7yA',
  'a stored password of a login': 'planted-LoginStored-7Kd3vR',
  'an answer to a login': 'planted-LoginAnswer-4Qs9zE',
  'a password of a proxy': 'planted-ProxyPass-5Yh1cV',
  'a value that is refused': 'planted-Refused-8Nj4sW',
  'a key that is unknown': 'sk_plantedUnknownKey3Fp7Tg',
  'a value of a query': 'planted-Query-6Bv2kD',
}

/** The token of the Connect server is not searched for; the rest of its configuration is. */
const connect = createServer((_request, response) => response.writeHead(401).end('{}')).listen(0, '127.0.0.1')
await once(connect, 'listening')
after(() => {
  connect.close()
  connect.closeAllConnections()
})
const connectUrl = `http://127.0.0.1:${(connect.address() as AddressInfo).port}`
/** A site that rejects every password, and does not keep it. */
const site = await startPages()
site.serve(
  '/login',
  `<!doctype html><title>Log in</title><h1>Log in</h1><p id="fault" role="alert"></p>
  <form onsubmit="p.value = ''; fault.textContent = 'The password is wrong.'; return false">
  <label for="u">Email</label><input id="u" type="email" autocomplete="username">
  <label for="p">Password</label><input id="p" type="password" autocomplete="current-password"><button>Log in</button></form>`,
)
after(() => site[Symbol.asyncDispose]())
const berth = await Berth.start({
  flags: ['--log-level', 'trace'],
  environment: {
    BERTH_ONEPASSWORD_CONNECT_URL: connectUrl,
    BERTH_EGRESS_ALLOW: `${new URL(connectUrl).host},${site.allowed}`,
  },
})
after(() => berth[Symbol.asyncDispose]())

/** Everything that sessions report. */
const categories = ['console', 'network', 'page', 'interaction', 'screenshot', 'platform']
const telemetry = { enabled: true, browser: Object.fromEntries(categories.map((name) => [name, { enabled: true }])) }

/** All responses, without API keys that they create. */
const answers: string[] = []
const made: Record<string, string> = {}

async function call(method: string, path: string, body?: unknown, key = berth.apiKey): Promise<Record<string, string>> {
  const response = await fetch(`${berth.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const record = text.startsWith('{') ? JSON.parse(text) : {}
  // The key of a vault item is a name.
  const madeKey = record.key?.startsWith('sk_') ? record.key : undefined
  if (madeKey) made[`the key ${record.name}`] = madeKey
  const madeSecret = record.secret?.startsWith('whsec_') ? record.secret : undefined
  if (madeSecret) made[`a secret of a webhook, by ${path}`] = madeSecret
  answers.push(JSON.stringify([...response.headers]) + text.replaceAll(madeKey ?? madeSecret ?? '\0', ''))
  return record
}

await useSecrets()

async function useSecrets(): Promise<void> {
  const values = { password: planted['a value of a credential'] }
  await call('POST', '/credentials', {
    name: 'mail',
    domain: 'example.com',
    values,
    totp_secret: planted['a TOTP secret'],
  })
  await call('PATCH', '/credentials/mail', { values: { pin: planted['a changed value'] } })
  await call('GET', '/credentials/mail/totp-code')
  await call('GET', '/credentials')
  await call('POST', '/credentials', { name: 'mail', domain: 'example.com', values })
  const refused = planted['a value that is refused']
  await call('POST', '/credentials', { name: 'x', domain: refused.replaceAll('-', ' '), values: { a: refused, b: 1 } })
  await call('POST', '/credentials', `{"name": "x", "values": {"a": "${refused}"`)
  await call('POST', '/org/credential_providers', {
    provider_type: 'onepassword',
    name: 'x',
    token: `${refused} ${refused}`,
  })

  const token = planted['a token of a provider']
  const provider = await call('POST', '/org/credential_providers', { provider_type: 'onepassword', name: 'op', token })
  for (const next of [undefined, planted['a rotated token of a provider']]) {
    if (next) await call('PATCH', `/org/credential_providers/${provider.id}`, { token: next })
    await call('POST', `/org/credential_providers/${provider.id}/test`)
    await call('GET', `/org/credential_providers/${provider.id}/items`)
  }

  await useVault(refused)
  await useLogin()

  const password = planted['a password of a proxy']
  const config = { host: '127.0.0.1', port: 9, username: 'user', password }
  const proxy = await call('POST', '/proxies', { type: 'custom', config })
  await call('POST', `/proxies/${proxy.id}/check`)
  await call('POST', '/proxies', { type: 'custom', config: { ...config, port: refused } })

  const webhook = await call('POST', '/webhooks', { url: connectUrl })
  await call('POST', `/webhooks/${webhook.id}/rotate_secret`)
  await call('POST', `/webhooks/${webhook.id}/test`)
  const key = await call('POST', '/org/api_keys', { name: 'first' })
  await call('POST', `/org/api_keys/${key.id}/rotate`, {})
  await call('POST', '/profiles', { name: 'by-key' }, made['the key first'])
  await call('DELETE', `/org/api_keys/${made['the key first']}`)
  await call('GET', '/browsers', undefined, planted['a key that is unknown'])
  await call('POST', `/profiles?token=${planted['a value of a query']}`, { name: 'with-query' })
  await call('GET', `/s/brwnothing/cdp?jwt=${planted['a value of a query']}`)

  // A session that runs during the search, so that its machine and egress have their configuration.
  await new Kernel({ apiKey: berth.apiKey, baseURL: berth.url }).browsers.create({
    headless: true,
    proxy: { id: String(proxy.id) },
  } as never)
  await call('GET', `/webhooks/${webhook.id}/deliveries`)
  const now = Date.now()
  const [start, end] = [now - 600_000, now + 600_000].map((time) => new Date(time).toISOString())
  await call('GET', `/audit-logs?start=${start}&end=${end}`)
}

/** Also fills the values into a page, which then contains them and is not searched. */
async function useVault(refused: string): Promise<void> {
  const item = '/vaults/logins/items/shop'
  await call('POST', '/vaults', { name: 'logins' })
  const field = { name: 'password', type: 'password', value: planted['a value of a vault item'] }
  const seed = { name: 'code', type: 'totp', value: planted['a seed of a vault item'] }
  const fields = [field, seed, { name: 'note', type: 'text' }]
  await call('PUT', item, { type: 'credential', spec: { provider: 'kernel', fields } })
  await call('PUT', item, { type: 'credential', spec: { provider: 'kernel', fields: [{ ...field, value: refused }] } })
  await call('PUT', item, { type: 'credential', spec: { provider: 'kernel', fields: [{ ...field, type: 'email' }] } })
  const change = { password: { value: planted['a changed value of a vault item'] } }
  await call('PATCH', item, { type: 'credential', version: 1, spec: { fields: change } })
  await call('PATCH', item, {
    type: 'credential',
    version: 1,
    spec: { fields: { password: { encrypted_value: refused } } },
  })
  const { action } = (await call('GET', item)) as unknown as { action: { url: string } }
  const body = new URLSearchParams({ note: planted['a value that was collected'] })
  const submitted = await fetch(action.url, { method: 'POST', body })
  assert.equal(submitted.status, 200)
  answers.push(await submitted.text())
  await call('POST', '/vault-provider-configs', {
    provider: 'link',
    name: 'payments',
    credentials: { client_id: 'id', client_secret: planted['a secret of a vault provider'] },
  })

  const session = await call('POST', '/browsers', { headless: true, vaults: [{ name: 'logins' }], telemetry })
  // Chromium itself stores the content of other inputs for its next start.
  const page = '<input id=a type=password><input id=b type=password><input id=c>'
  const code = `await page.route('**/*', (route) => route.fulfill({ contentType: 'text/html', body: '${page}' })); await page.goto('http://shop.test/')`
  const id = String(session.session_id)
  const replay = await call('POST', `/browsers/${id}/replays`)
  await call('POST', `/browsers/${id}/playwright/execute`, { code })
  const filled = await call('POST', `${item}/operations`, {
    type: 'fill',
    browser_id: id,
    fields: ['password', 'note', 'code'].map((name, index) => ({ field: name, selector: `#${'abc'[index]}` })),
  })
  assert.equal(filled.status, 'completed', JSON.stringify(filled))
  await call('GET', `${item}/events`)
  await call('GET', `/vaults/logins/items`)
  await call('POST', `/browsers/${id}/replays/${replay.replay_id}/stop`)
  await call('GET', `/browsers/${id}/replays`)
  await tellOf(id)
}

/** The telemetry of a session about its pages. */
async function tellOf(id: string): Promise<void> {
  const isThere = async () => {
    await call('GET', `/browsers/${id}/telemetry/events?limit=100`)
    return answers.at(-1)?.includes('"page_') ?? false
  }
  await until('the telemetry of a session', isThere, { limitSeconds: 30, everyMilliseconds: 200 })
}

interface Question {
  readonly interaction_id: string
  readonly browser_session_id: string
  readonly fields: readonly { readonly id: string; readonly type: string }[]
}

/** A login that has typed a stored password and then an entered one, and waits for another one. */
async function useLogin(): Promise<void> {
  const values = { email: 'ann@example.com', password: planted['a stored password of a login'] }
  await call('POST', '/credentials', { name: 'login', domain: hostName, values })
  const connection = await call('POST', '/auth/connections', {
    domain: hostName,
    profile_name: 'login',
    login_url: `${site.url}/login`,
    credential: { name: 'login' },
    record_session: true,
    browser: { telemetry },
  })
  const path = `/auth/connections/${connection.id}`
  await call('POST', `${path}/login`)
  const asked = (than?: unknown) =>
    until(
      'the question of a login',
      async () => {
        const state = await call('GET', path)
        if (state.flow_status === 'FAILED') throw new Error(JSON.stringify(state))
        const { interaction_id: question = null } = state
        return question !== null && question !== than && state
      },
      { limitSeconds: 60, everyMilliseconds: 200 },
    )
  const first = (await asked()) as unknown as Question
  const entered = first.fields.map(({ id, type }) => [
    id,
    type === 'password' ? planted['an answer to a login'] : 'ann@example.com',
  ])
  await call('POST', `${path}/submit`, { field_values: Object.fromEntries(entered) })
  await asked(first.interaction_id)
  await tellOf(first.browser_session_id)
  await call('GET', `${path}/timeline`)
}

/** Each secret in all encodings of text. */
function spellingsOf(secret: string): readonly Buffer[] {
  const bytes = Buffer.from(secret)
  // Within other text, base64 has one of three forms. Its first and last letters depend on the neighbours.
  const base64 = [0, 1, 2].map((offset) =>
    Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replaceAll('=', '')
      .slice(offset === 0 ? 0 : 4, -3),
  )
  const json = JSON.stringify(secret).slice(1, -1)
  return [...new Set([secret, encodeURIComponent(secret), json, bytes.toString('hex'), ...base64])].map((text) =>
    Buffer.from(text),
  )
}

function assertNothingOf(secrets: Readonly<Record<string, string>>, places: ReadonlyMap<string, Buffer>): void {
  assert.ok(places.size > 0)
  const found: string[] = []
  for (const [what, secret] of Object.entries(secrets)) {
    for (const [place, content] of places) {
      if (spellingsOf(secret).some((spelling) => content.includes(spelling))) found.push(`${what} in ${place}`)
    }
  }
  assert.deepEqual(found, [])
}

const secrets = () => ({ ...planted, ...made })

test('no response contains a secret', () => {
  assert.ok(Object.keys(made).length >= 1)
  assertNothingOf(
    secrets(),
    new Map(answers.map((text, index) => [`answer ${index}: ${text.slice(-200)}`, Buffer.from(text)])),
  )
})

test('no log contains a secret at any level', () => {
  assertNothingOf({ ...secrets(), 'the configured key': berth.apiKey }, new Map([['the log', Buffer.from(berth.log)]]))
})

const ownDatabase = oneServerOnly('several use a database outside of their folders')

test('no row of the database contains a secret', ownDatabase, async () => {
  const { runtimeFolder } = await HostView.of(berth.dataFolder)
  const password = await readFile(join(berth.dataFolder, 'postgres-password'), 'utf8')
  const client = new pg.Client({ host: join(runtimeFolder, 'postgres'), user: 'berth', password, database: 'postgres' })
  await client.connect()
  try {
    const { rows: tables } = await client.query(
      "select quote_ident(table_schema) || '.' || quote_ident(table_name) as name from information_schema.tables where table_type = 'BASE TABLE' and table_schema <> 'information_schema'",
    )
    const places = new Map<string, Buffer>()
    for (const { name } of tables) {
      // As a dump writes them, with bytes in hex, which is one of the spellings.
      const { rows } = await client.query(`select t::text as row from ${name} t`)
      places.set(name, Buffer.from(rows.map(({ row }) => row).join('\n')))
    }
    for (const name of [
      ...['public.credentials', 'public.credential_providers', 'public.proxies', 'public.audit_entries'],
      ...['public.vault_items', 'public.vault_item_events', 'public.vault_provider_configs', 'public.vault_operations'],
      ...['public.auth_connections', 'public.auth_flows'],
    ])
      assert.ok((places.get(name)?.length ?? 0) > 0, name)

    assertNothingOf({ ...secrets(), 'the configured key': berth.apiKey }, places)
  } finally {
    await client.end()
  }
})

test('no file of the data folder contains a secret', ownDatabase, async () => {
  const root = await realpath(berth.dataFolder)
  const places = new Map<string, Buffer>()
  for (const { parentPath, name } of (await readdir(root, { recursive: true, withFileTypes: true })).filter((entry) =>
    entry.isFile(),
  )) {
    const content = await readFile(join(parentPath, name)).catch(() => undefined) // It may have been deleted since it was listed.
    if (content) places.set(join(parentPath, name), content)
  }
  assert.ok([...places.keys()].some((path) => path.includes('pg_wal')))

  assertNothingOf({ ...secrets(), 'the configured key': berth.apiKey }, places)
})

test('no process has a secret in its environment or its command', async () => {
  const places = new Map<string, Buffer>()
  for (const { pid, command } of await listProcesses()) {
    if (pid === process.pid) continue
    const environment = await readFile(`/proc/${pid}/environ`).catch(() => Buffer.alloc(0))
    places.set(`${pid} ${command.slice(0, 100)}`, Buffer.concat([environment, Buffer.from(command)]))
  }

  assertNothingOf(secrets(), places)
})
