import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { after, test } from 'node:test'
import pg from 'pg'
import { HostView } from './fault/testing/holdings.ts'
import { until } from './fault/testing/until.ts'
import { Berth, oneServerOnly } from './testing/berth.ts'
import { launchDesktopBrowser } from './testing/browsers/desktop-browser.ts'
import { CdpClient } from './testing/cdp.ts'
import { hostName, startPages } from './testing/pages.ts'

/** A site with a login in two steps: a password, and an authenticator code. */
const pages = await startPages()
const user = 'ann@example.com'
const password = 'planted-Right-Horse-9!'
const seed = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
const sessions = new Set<string>()
const attempts: Record<string, string>[] = []

const html = (title: string, body: string) =>
  `<!doctype html><html lang="en"><title>${title}</title><h1>${title}</h1>${body}</html>`
const passwordForm = (error = '') =>
  html(
    'Log in',
    `${error && `<p role="alert">${error}</p>`}<form method="post" action="/login">
    <label for="u">Email</label><input id="u" name="user" type="email" autocomplete="username">
    <label for="p">Password</label><input id="p" name="password" type="password" autocomplete="current-password">
    <button>Log in</button></form>`,
  )
const codeForm = (error = '') =>
  html(
    'Two-step verification',
    `${error && `<p role="alert">${error}</p>`}<form method="post" action="/code">
    <label for="c">Code of your authenticator app</label>
    <input id="c" name="code" inputmode="numeric" autocomplete="one-time-code"><button>Verify</button></form>`,
  )

pages.serve('/', (request, response) => {
  if (isLoggedIn(request)) return send(response, html('Account', '<a href="/logout">Log out</a>'))
  return send(response, html('Shop', '<a href="/login">Log in</a>'))
})
pages.serve('/login', async (request, response) => {
  if (request.method === 'GET') return send(response, passwordForm())
  const sent = await readForm(request)
  attempts.push(sent)
  if (sent.user !== user || sent.password !== password) return send(response, passwordForm('The password is wrong.'))
  return redirect(response, '/code', 'step=2; Path=/')
})
pages.serve('/code', async (request, response) => {
  if (request.method === 'GET') return send(response, codeForm())
  const { code } = await readForm(request)
  if (!currentCodes().includes(code ?? '')) return send(response, codeForm('The code is not valid.'))
  const id = `s${sessions.size}-${Math.random()}`
  sessions.add(id)
  return redirect(response, '/', `session=${id}; Path=/; Max-Age=86400; HttpOnly`)
})

function isLoggedIn({ headers }: IncomingMessage): boolean {
  const [, id = ''] = /session=([^;]+)/.exec(headers.cookie ?? '') ?? []
  return sessions.has(id)
}

function send(response: ServerResponse, text: string): void {
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' }).end(text)
}

function redirect(response: ServerResponse, location: string, cookie: string): void {
  response.writeHead(303, { location, 'set-cookie': cookie }).end()
}

async function readForm(request: IncomingMessage): Promise<Record<string, string>> {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(request, 'end')
  return Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()))
}

/** Codes of this period and the previous one, which sites accept. */
function currentCodes(): readonly string[] {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
  const bits = [...seed].map((letter) => alphabet.indexOf(letter).toString(2).padStart(5, '0')).join('')
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
  const counter = Math.floor(Date.now() / 30_000)
  return [counter, counter - 1].map((count) => {
    const message = Buffer.alloc(8)
    message.writeBigUInt64BE(BigInt(count))
    const digest = createHmac('sha1', key).update(message).digest()
    const offset = (digest.at(-1) ?? 0) & 15
    return String((digest.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, '0')
  })
}

const berth = await Berth.borrow()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})
const client = await berth.client()
const { connections } = client.auth

type State = Awaited<ReturnType<typeof connections.retrieve>>

const reaches = (id: string, isSo: (state: State) => boolean, what: string) =>
  until(
    what,
    async () => {
      const state = await connections.retrieve(id)
      if (state.flow_status === 'FAILED') throw new Error(`${what}: ${JSON.stringify(state)}`)
      return isSo(state) && state
    },
    { limitSeconds: 60, everyMilliseconds: 100 },
  )

test(
  'a person logs in by answering, sessions are logged in, and a lost login is detected and repeated automatically',
  oneServerOnly('reaches into the database of one server'),
  async () => {
    const connection = await connections.create({
      domain: hostName,
      profile_name: 'ann',
      login_url: `${pages.url}/login`,
      allowed_domains: [hostName],
    })
    const begun = await connections.login(connection.id)
    const stream = await client.auth.connections.follow(connection.id)
    const told = (async () => {
      const steps: string[] = []
      for await (const event of stream) if ('flow_step' in event) steps.push(`${event.flow_status} ${event.flow_step}`)
      return steps
    })()
    assert.match(begun.hosted_url, new RegExp(`/login/${connection.id}\\?code=`))

    const first = await reaches(connection.id, ({ flow_step }) => flow_step === 'AWAITING_INPUT', 'the password')
    const values = Object.fromEntries(
      (first.fields ?? []).map(({ id, type }) => [id, type === 'password' ? password : user]),
    )
    await connections.submit(connection.id, { field_values: values })
    const second = await reaches(
      connection.id,
      ({ fields }) => fields?.[0]?.type === 'totp_code' || fields?.[0]?.type === 'code',
      'the code',
    )
    const [code = ''] = currentCodes()
    await connections.submit(connection.id, { fields: { [second.discovered_fields?.[0]?.name ?? '']: code } })
    const done = await reaches(connection.id, ({ flow_status }) => flow_status === 'SUCCESS', 'the login')

    assert.deepEqual([done.status, done.post_login_url], ['AUTHENTICATED', `${pages.url}/`])
    const steps = await told
    assert.equal(steps[0], 'IN_PROGRESS DISCOVERING')
    assert.equal(steps.at(-1), 'SUCCESS COMPLETED')
    assert.ok(steps.includes('IN_PROGRESS AWAITING_INPUT') && steps.includes('IN_PROGRESS SUBMITTING'), String(steps))
    assert.deepEqual(attempts, [{ user, password }])

    const session = await client.browsers.create({ headless: true, profile: { name: 'ann' } })
    const cdp = await CdpClient.open(session.cdp_ws_url)
    const page = await cdp.openPage(`${pages.url}/`)
    const title = () => cdp.evaluate(page, 'document.title').catch(() => '')
    await until('the account', async () => (await title()) === 'Account', { limitSeconds: 60 })
    cdp.socket.close()
    await client.browsers.deleteByID(session.session_id)

    assert.equal(done.can_reauth, false)
    await client.credentials.update(String(done.credential?.name), { totp_secret: seed })
    sessions.clear()
    await checkNow(connection.id)
    const again = await reaches(
      connection.id,
      ({ flow_type, flow_status }) => flow_type === 'REAUTH' && flow_status === 'SUCCESS',
      'the second login',
    )
    assert.equal(again.status, 'AUTHENTICATED')
    assert.deepEqual(attempts, [
      { user, password },
      { user, password },
    ])
    const timeline = await Array.fromAsync(connections.timeline(connection.id))
    assert.deepEqual(
      timeline.map(({ type, status }) => `${type} ${status}`),
      ['reauth SUCCESS', 'health_check NEEDS_AUTH', 'login SUCCESS'],
    )
    const isOver = async () => (await Array.fromAsync(client.browsers.list())).length === 0
    await until('the end of all browsers', isOver, { limitSeconds: 60 })
    assert.ok(!berth.log.includes(password), 'the log does not tell the password')
  },
)

test('a person without a key logs in on the hosted page, whose address works once', async () => {
  const connection = await connections.create({
    domain: hostName,
    profile_name: 'bob',
    login_url: `${pages.url}/login`,
    save_credentials: false,
  })
  const { hosted_url: url } = await connections.login(connection.id)
  const browser = await launchDesktopBrowser()
  try {
    const context = await browser.newContext({ viewport: { width: 360, height: 740 }, colorScheme: 'dark' })
    const page = await context.newPage()
    const faults: string[] = []
    page.on('pageerror', (error) => faults.push(String(error)))
    page.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
    await page.goto(`${url}&success_url=${encodeURIComponent('about-app://done?a=1')}`)
    assert.ok(!page.url().includes('code='), 'the code leaves the address')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByLabel('Email').fill(user)
    await page.getByLabel('Password', { exact: true }).fill('not-this-one')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('alert').filter({ hasText: 'The password is wrong.' }).waitFor()
    assert.equal(await page.getByLabel('Password', { exact: true }).getAttribute('aria-invalid'), 'true')
    // The token is stored for the tab.
    await page.reload()
    await page.getByLabel('Email').fill(user)
    await page.getByLabel('Password', { exact: true }).fill(password)
    await page.keyboard.press('Enter')
    await page.getByLabel('Code of your authenticator app').fill(currentCodes()[0] ?? '')
    const width = await page.evaluate('document.documentElement.scrollWidth')
    assert.ok(Number(width) <= 360, 'it fits a phone')
    await page
      .getByRole('button', { name: 'Verify' })
      .or(page.getByRole('button', { name: 'Continue' }))
      .click()
    await page.getByRole('heading', { name: `You are logged in to ${hostName}` }).waitFor()
    assert.equal((await connections.retrieve(connection.id)).status, 'AUTHENTICATED')
    const again = await context.newPage()
    await again.goto(url)
    await again.getByRole('heading', { name: 'This link is not valid any more' }).waitFor()
    assert.deepEqual(
      faults.filter((fault) => !fault.includes('about-app')),
      [],
    )
  } finally {
    await browser.close()
  }
})

/** The shortest interval is longer than a test. */
async function checkNow(connectionId: string): Promise<void> {
  const { runtimeFolder } = await HostView.of(berth.dataFolder)
  const key = await readFile(join(berth.dataFolder, 'postgres-password'), 'utf8')
  const database = new pg.Client({
    host: join(runtimeFolder, 'postgres'),
    user: 'berth',
    password: key,
    database: 'postgres',
  })
  await database.connect()
  await database.query('update auth_connections set next_check_at = now() where id = $1', [connectionId])
  await database.end()
}
