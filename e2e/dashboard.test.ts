import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import axe from 'axe-core'
import { type BrowserContext, chromium, type Page } from 'playwright-core'
import { Berth } from './testing/berth.ts'
import { messagingExtension, packCrx, zipOf } from './testing/extension-files.ts'

/** Stands for the store, which answers every request with the same extension. */
const { crx } = packCrx(await zipOf(messagingExtension('from the store', 1)))
const store = createServer((_request, response) => response.end(crx)).listen(0, '127.0.0.1')
await once(store, 'listening')
const storeUrl = `http://127.0.0.1:${(store.address() as AddressInfo).port}/crx`
const berth = await Berth.start({ environment: { BERTH_CHROME_STORE_URL: storeUrl } })
const client = await berth.client()
const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
const browser = await chromium.launch({ executablePath: '/usr/lib/chromium/chromium', args })
after(async () => {
  await browser.close()
  await berth[Symbol.asyncDispose]()
  store.close()
})

/** Where a run leaves what it has seen: BERTH_SCREENSHOTS=docs/images */
const pictures = process.env.BERTH_SCREENSHOTS
const refusals: string[] = []

function watch(page: Page): void {
  page.setDefaultTimeout(30_000)
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) refusals.push(message.text())
  })
  page.on('pageerror', (error) => refusals.push(error.message))
}

async function signedIn(options: Parameters<typeof browser.newContext>[0] = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  const page = await context.newPage()
  watch(page)
  await page.goto(`${berth.url}/dashboard`)
  await page.getByLabel('API key').fill(berth.apiKey)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Sessions', exact: true }).waitFor()
  return page
}

/** Nothing serious, in both themes, and nothing wider than the page. */
async function isAccessible(page: Page, name: string): Promise<void> {
  for (const theme of ['light', 'dark']) {
    await page.evaluate(`document.documentElement.dataset.theme = '${theme}'`)
    await page.evaluate(axe.source)
    const { violations } = await page.evaluate<{
      violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[]
    }>("axe.run({ exclude: ['.xterm'] }, { iframes: false, runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] })")
    const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
    const told = serious.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`)
    assert.deepEqual(told, [], `${name} in ${theme}`)
    if (pictures) await page.screenshot({ path: join(pictures, `${name}-${theme}.png`) })
  }
  const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
  assert.ok(overflow <= 0, `${name} is ${overflow} px wider than the window`)
}

const cookiesOf = (context: BrowserContext) => context.cookies().then((all) => all.map(({ name }) => name))

test('a key signs in, its cookie is for the dashboard alone, and signing out ends it', async () => {
  const context = await browser.newContext()
  const page = await context.newPage()
  watch(page)
  await page.goto(`${berth.url}/dashboard`)
  await isAccessible(page, 'sign-in')
  await page.goto(`${berth.url}/dashboard#code=used-before`)
  await page.getByRole('alert').getByText('was used before').waitFor()
  await page.getByLabel('API key').fill('sk_wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').getByText('is not a valid API key').waitFor()

  await page.getByLabel('API key').fill(berth.apiKey)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Sessions', exact: true }).waitFor()
  const [cookie] = await context.cookies(`${berth.url}/dashboard`)
  assert.deepEqual([cookie?.httpOnly, cookie?.sameSite, cookie?.path], [true, 'Strict', '/dashboard'])
  assert.doesNotMatch(JSON.stringify(await context.storageState()), new RegExp(berth.apiKey))
  const ask = (path: string, headers: Record<string, string>) =>
    fetch(berth.url + path, { headers: { cookie: `${cookie?.name}=${cookie?.value}`, ...headers } })
  const own = { 'x-berth-dashboard': '1' }
  const statuses = await Promise.all([
    ask('/dashboard/api/browsers', own),
    ask('/dashboard/api/browsers', {}),
    ask('/dashboard/api/browsers', { ...own, 'sec-fetch-site': 'cross-site' }),
    ask('/browsers', own),
  ])
  assert.deepEqual(
    statuses.map(({ status }) => status),
    [200, 401, 401, 401],
  )

  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByLabel('API key').waitFor()
  assert.deepEqual(await cookiesOf(context), [])
  assert.equal((await ask('/dashboard/api/browsers', own)).status, 401)
  await context.close()
})

test('a session is made by the form and seen live, and its recording moves with its events', async () => {
  const page = await signedIn()
  await page.getByText('No session runs.').waitFor()
  await page.getByRole('button', { name: 'New session' }).click()
  const form = page.getByRole('dialog', { name: 'New session' })
  await form.getByLabel('Name').first().fill('not a name')
  await form.getByRole('button', { name: 'Create' }).click()
  await form.getByText('must have 1 to 255 characters out of letters').waitFor()
  await form.getByLabel('Name').first().fill('by-the-form')
  await form.getByLabel('Headless').check()
  await form.getByLabel('Tags').fill('env=e2e')
  assert.match((await form.locator('pre').textContent()) ?? '', /name: 'by-the-form'/)
  await isAccessible(page, 'new-session')
  await form.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('heading', { name: 'by-the-form' }).waitFor()
  const session = await client.browsers.retrieve('by-the-form')
  assert.deepEqual([session.headless, session.tags], [true, { env: 'e2e' }])
  await page.frameLocator('iframe').locator('body[data-state=connected]').waitFor({ state: 'attached' })

  await page.getByRole('tab', { name: 'Console' }).click()
  await page.getByRole('button', { name: 'Capture console' }).click()
  await page.getByRole('button', { name: 'Capture console' }).waitFor({ state: 'detached' })

  await page.getByRole('tab', { name: 'Replays' }).click()
  await page.getByRole('button', { name: 'Start recording' }).click()
  await page.getByText('Recording…').waitFor()
  const remote = await chromium.connectOverCDP(session.cdp_ws_url)
  await remote.contexts()[0]?.pages()[0]?.evaluate("console.log('seen by the dashboard')")

  await page.getByRole('tab', { name: 'Console' }).click()
  await page.getByRole('button', { name: /seen by the dashboard/ }).waitFor()
  await page.getByRole('tab', { name: 'Replays' }).click()
  await page.getByRole('button', { name: 'Stop recording' }).click()
  await page.getByRole('list', { name: 'Events of the recording' }).getByText('seen by the dashboard').click()
  await page.locator('video[src]').waitFor()
  await remote.close()
  await client.browsers.deleteByID(session.session_id)
  await page.getByText('This session ended at').waitFor()
  await page.locator('video[src]').waitFor()
  await page.context().close()
})

test('a session has a terminal and files, and the list of sessions follows what happens', async () => {
  const session = await client.browsers.create({ headless: true, name: 'by-the-api', timeout_seconds: 300 })
  const page = await signedIn()
  await page.getByRole('link', { name: 'by-the-api' }).click()
  await page.getByRole('heading', { name: 'by-the-api' }).waitFor()
  await page.getByRole('tab', { name: 'Terminal' }).click()
  await page.locator('.xterm-helper-textarea').focus()
  await page.keyboard.type('tty && echo made > made-in-terminal.txt && echo do""ne\n')
  await page.locator('.xterm-rows, .xterm-accessibility-tree').getByText('done').first().waitFor()
  await isAccessible(page, 'session')

  await page.getByRole('tab', { name: 'Files' }).click()
  await page.locator('input[type=file]').setInputFiles({
    name: 'dropped.txt',
    mimeType: 'text/plain',
    buffer: Buffer.from('from the viewer'),
  })
  await page.getByRole('button', { name: '📄 dropped.txt' }).click()
  const editor = page.getByRole('dialog').getByRole('textbox')
  assert.equal(await editor.inputValue(), 'from the viewer')
  await editor.fill('edited')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  const file = await client.browsers.fs.readFile(session.session_id, { path: '/home/kernel/dropped.txt' })
  assert.equal(await file.text(), 'edited')
  await page.getByRole('button', { name: '📄 made-in-terminal.txt' }).waitFor()

  await page.setViewportSize({ width: 390, height: 844 })
  await isAccessible(page, 'session-phone')
  await page.setViewportSize({ width: 1280, height: 800 })

  // The list follows what happens elsewhere.
  await page.getByRole('link', { name: 'All sessions' }).click()
  await page.getByRole('link', { name: 'by-the-api' }).waitFor()
  await page.locator('img.thumbnail').waitFor()
  await isAccessible(page, 'sessions')
  await page.getByRole('searchbox').fill('nothing-like-it')
  await page.getByText('No session matches.').waitFor()
  assert.match(page.url(), /query=nothing-like-it/)
  await page.getByRole('searchbox').fill('')
  await page.getByRole('checkbox', { name: 'Select by-the-api' }).check()
  await page.getByRole('button', { name: 'Delete selected' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No session runs.').waitFor()
  await page.context().close()
})

test('the pages of resources list, create, edit and delete', async () => {
  const page = await signedIn()
  const open = async (title: string) => {
    await page.getByRole('navigation').getByRole('link', { name: title, exact: true }).click()
    await page.getByRole('heading', { name: title, exact: true, level: 1 }).waitFor()
  }
  await open('Overview')
  await page.getByRole('img', { name: /Sessions, by hour/ }).waitFor()
  await page.getByRole('img', { name: /Time of a create, by hour: p50 at most \d/ }).waitFor()
  await page
    .getByRole('region', { name: 'Doctor' })
    .getByText(/checks are well/)
    .waitFor()
  await isAccessible(page, 'overview')
  await open('Proxies')
  await page.getByText('No proxy.').waitFor()
  await page.getByRole('button', { name: 'New proxy' }).click()
  const form = page.getByRole('dialog')
  await form.getByLabel('Type').selectOption('custom')
  await form.getByLabel('Name').first().fill('office')
  await form.locator('summary', { hasText: 'Config' }).click()
  await form.getByLabel('Host', { exact: true }).fill('http://not-a-host')
  await form.getByLabel('Port').fill('x')
  await form.getByRole('button', { name: 'Create' }).click()
  await form.getByText('must be a host name or an address').waitFor()
  await form.getByLabel('Host', { exact: true }).fill('proxy.test')
  await form.getByLabel('Port').fill('3128')
  await form.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('cell', { name: 'proxy.test:3128' }).waitFor()
  await isAccessible(page, 'proxies')
  await page.getByRole('button', { name: 'Edit' }).click()
  await form.getByLabel('Name').fill('office-2')
  await form.getByRole('button', { name: 'Save' }).click()
  await page.getByText('office-2', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'Delete' }).click()
  await form.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No proxy.').waitFor()

  await open('API keys')
  await page.getByRole('button', { name: 'New API key' }).click()
  await form.getByLabel('Name').fill('made here')
  await form.getByRole('button', { name: 'Create' }).click()
  const told = await form.getByText(/^sk_\w+/).textContent()
  const [key = ''] = (told ?? '').split('\n')
  assert.equal((await fetch(`${berth.url}/browsers`, { headers: { authorization: `Bearer ${key}` } })).status, 200)
  await page.keyboard.press('Escape')
  await open('Audit log')
  await page.getByRole('cell', { name: 'POST /proxies' }).first().waitFor()
  await isAccessible(page, 'audit')
  const others = ['Pools', 'Profiles', 'Extensions', 'Apps', 'Deployments', 'Invocations', 'Credentials']
  for (const title of [...others, 'Credential providers', 'Vaults', 'Projects', 'OTLP destinations']) {
    await open(title)
    await page.locator('.empty, table').waitFor()
    assert.equal(await page.getByRole('alert').count(), 0, title)
  }
  await page.context().close()
})

test('an extension comes from the store, a project gets limits, and a vault shows no value', async () => {
  const page = await signedIn()
  const form = page.getByRole('dialog')
  const open = (title: string) => page.getByRole('navigation').getByRole('link', { name: title, exact: true }).click()
  await open('Extensions')
  await page.getByRole('button', { name: 'Add from the store' }).click()
  await form.getByLabel('URL').fill('https://elsewhere.test/')
  await form.getByRole('button', { name: 'Create' }).click()
  await form.locator('[aria-invalid=true], [role=alert]').first().waitFor()
  await form.getByLabel('URL').fill(`https://chromewebstore.google.com/detail/any/${'a'.repeat(32)}`)
  await form.getByLabel('Name').fill('from-the-store')
  await form.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('cell', { name: 'from-the-store' }).first().waitFor()
  await isAccessible(page, 'extensions')

  await open('Projects')
  await page.getByRole('button', { name: 'Limits' }).first().click()
  await form.getByLabel('Max concurrent sessions').fill('7')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Limits' }).first().click()
  assert.equal(await form.getByLabel('Max concurrent sessions').inputValue(), '7')
  await isAccessible(page, 'limits')
  await form.getByLabel('Max concurrent sessions').fill('0')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.waitFor({ state: 'detached' })

  const headers = { authorization: `Bearer ${berth.apiKey}`, 'content-type': 'application/json' }
  await fetch(`${berth.url}/vaults`, { method: 'POST', headers, body: JSON.stringify({ name: 'shop' }) })
  const field = { name: 'pin', type: 'password', value: 'not-to-be-shown' }
  const made = await fetch(`${berth.url}/vaults/shop/items/known`, {
    method: 'PUT',
    headers,
    body: JSON.stringify({ type: 'credential', spec: { provider: 'kernel', fields: [field] } }),
  })
  assert.equal(made.status, 200)
  await open('Vaults')
  await page.getByRole('link', { name: 'Items' }).click()
  await page.getByText('pin ✓').waitFor()
  await page.getByRole('button', { name: 'New item' }).click()
  await form.getByLabel('Key').fill('asked-for')
  await form.getByLabel('Fields', { exact: false }).first().fill('user\npassword')
  await form.getByRole('button', { name: 'Create' }).click()
  await page.getByText('password: none').waitFor()
  await page.getByRole('link', { name: 'Enter values' }).waitFor()
  assert.doesNotMatch(await page.content(), /not-to-be-shown/)
  await isAccessible(page, 'vault')
  await page.context().close()
})

test('the reference keeps the key in memory and asks no other host, and the guides are beside it', async () => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  const page = await context.newPage()
  watch(page)
  const foreign: string[] = []
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(berth.url) && !/^(data|blob):/.test(url)) foreign.push(url)
  })
  await page.goto(`${berth.url}/docs`)
  await page.getByText('Create a browser session').first().waitFor()
  await isAccessible(page, 'reference')
  await page.getByPlaceholder('Token').first().fill(berth.apiKey)
  await page.goto(`${berth.url}/docs/guides/sessions`)
  await isAccessible(page, 'guide')
  await page.setViewportSize({ width: 390, height: 844 })
  await isAccessible(page, 'guide-phone')
  await page.goto(`${berth.url}/docs`)
  await page.getByText('Isolated, real Chromium sessions').first().waitFor()
  await isAccessible(page, 'reference-phone')
  const stored = await page.evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])')
  assert.doesNotMatch(stored, new RegExp(berth.apiKey))
  assert.deepEqual(foreign, [])
  await context.close()
})

test('no page breaks its own policy', () => {
  assert.deepEqual(refusals, [])
})
