import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type Browser, chromium, type Page } from 'playwright-core'
import { isDeep, rounds } from './fault/testing/deep.ts'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { messagingExtension, packCrx, zipOf } from './testing/browsers/extension-files.ts'
import { CdpClient } from './testing/cdp.ts'
import { hostName, startPages, testHost } from './testing/pages.ts'
import { browserProcess } from './testing/processes.ts'

const pages = await startPages()
pages.serve('/visit', '<!doctype html><title>Visit</title>')
pages.serve('/blocked', '<!doctype html><title>Not blocked</title>')
const store = await startPages()
const berth = await Berth.start({
  environment: { BERTH_EGRESS_ALLOW: pages.allowed, BERTH_CHROME_STORE_URL: `${store.hostUrl}/crx` },
})
const client = await berth.client()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
  await store[Symbol.asyncDispose]()
})

const fileOf = (bytes: Buffer, name = 'extension.zip') => new File([new Uint8Array(bytes)], name)
const load = (session: string, extensions: Readonly<Record<string, Buffer>>) =>
  client.browsers.loadExtensions(session, {
    extensions: Object.entries(extensions).map(([name, zip]) => ({ name, zip_file: fileOf(zip) })),
  })

async function connect(url: string): Promise<{ browser: Browser; page: Page }> {
  const browser = await chromium.connectOverCDP(url)
  const page = browser.contexts()[0]?.pages()[0]
  assert.ok(page)
  return { browser, page }
}

/** Returns what the extensions wrote into the page, once each has its response. */
async function answersIn(page: Page, names: readonly string[]): Promise<Record<string, string | undefined>> {
  await page.waitForFunction(`${JSON.stringify(names)}.every((name) => document.documentElement.dataset[name])`)
  return page.evaluate('({ ...document.documentElement.dataset })')
}

/** Uses a page of its own: a failed load navigates to the error page later and would disturb the next step. */
async function isBlocked(browser: Browser, url: string): Promise<boolean> {
  const page = await browser.contexts()[0]?.newPage()
  const failure = await page?.goto(url).then(() => '', String)
  await page?.close()
  return failure?.includes('ERR_BLOCKED_BY_CLIENT') ?? false
}

async function workersOf(url: string): Promise<readonly string[]> {
  const cdp = await CdpClient.open(url)
  const { targetInfos } = await cdp.send('Target.getTargets')
  await cdp.close()
  const workers = (targetInfos as { type: string; url: string }[]).filter(({ type }) => type === 'service_worker')
  return workers.map(({ url }) => url)
}

test('the official client manages extensions, and fetches them from the store', async () => {
  const zip = await zipOf(messagingExtension('kept', 1))
  const uploads = await Promise.allSettled(
    Array.from({ length: 20 }, () => client.extensions.upload({ file: fileOf(zip), name: 'kept' })),
  )
  const [kept] = uploads.flatMap((upload) => (upload.status === 'fulfilled' ? upload.value : []))
  const refusals = uploads.flatMap((upload) => (upload.status === 'rejected' ? upload.reason.status : []))
  assert.ok(kept)
  assert.deepEqual(refusals, Array(19).fill(409))
  assert.deepEqual(await client.extensions.get('kept'), kept)
  assert.deepEqual(await Array.fromAsync(client.extensions.list({ name: 'KEPT' })), [kept])
  const bytes = Buffer.from(await (await client.extensions.download(kept.id)).arrayBuffer())
  assert.deepEqual(bytes, zip)

  await client.extensions.delete('kept')

  await assert.rejects(client.extensions.get(kept.id), { status: 404 })
  const again = await client.extensions.upload({ file: fileOf(zip), name: 'kept' })
  await client.extensions.delete(again.id)

  const { crx, id } = packCrx(zip)
  store.serve('/crx', (_request, response) => void response.end(crx))
  const url = `https://chromewebstore.google.com/detail/kept/${id}`
  const fetched = await client.extensions.downloadFromChromeStore({ url, os: 'win' })
  assert.deepEqual(Buffer.from(await fetched.arrayBuffer()), zip)
})

/** A stealthy headless browser is a headful one without a display. */
const stealthKind = { headless: true, stealth: true }
for (const kind of [{ headless: false }, { headless: true }, ...(isDeep ? [stealthKind] : [])]) {
  const words = `${'stealth' in kind ? 'stealthy ' : ''}${kind.headless ? 'headless' : 'headful'}`

  test(`in a ${words} session, extensions work from the first page on, when added later, and after a crash`, async () => {
    const name = `one-${words.replace(' ', '-')}`
    const zip = await zipOf(messagingExtension('one', 1))
    const uploaded = await client.extensions.upload({ file: fileOf(zip), name })
    assert.equal(uploaded.checksum, createHash('sha256').update(zip).digest('hex'))
    const session = await client.browsers.create({
      ...kind,
      extensions: [{ name }],
      start_url: `${pages.url}/visit`,
      timeout_seconds: 120,
    } as Parameters<typeof client.browsers.create>[0])
    const { browser, page } = await connect(session.cdp_ws_url)

    await page.waitForURL(`${pages.url}/visit`)
    assert.deepEqual(await answersIn(page, ['one']), { ext: '1', one: '1' })
    assert.equal((await workersOf(session.cdp_ws_url)).length, 1)
    assert.ok((await client.extensions.get(uploaded.id)).last_used_at)

    await load(session.session_id, { two: await zipOf(messagingExtension('two', 2)) })
    await page.reload()
    assert.deepEqual(await answersIn(page, ['one', 'two']), { ext: '1', one: '1', two: '2' })
    assert.ok(browser.isConnected(), 'the connection has stayed')

    await delay(rounds({ short: 0, deep: 45_000 })) // Waits until the workers are suspended.
    await page.goto(`${pages.url}/visit`)
    assert.deepEqual(await answersIn(page, ['one', 'two']), { ext: '1', one: '1', two: '2' })

    process.kill(await browserProcess(session.session_id), 'SIGKILL')
    const again = await connect(session.cdp_ws_url)
    await again.page.goto(`${pages.url}/visit`)
    assert.deepEqual(await answersIn(again.page, ['one', 'two']), { ext: '1', one: '1', two: '2' })
    assert.equal((await workersOf(session.cdp_ws_url)).length, 2)

    await browser.close()
    await again.browser.close()
    await client.browsers.deleteByID(session.session_id)
  })
}

test('either all of several extensions are loaded or none, and simultaneous loads wait for each other', async () => {
  const { session_id, cdp_ws_url } = await client.browsers.create({ headless: true, timeout_seconds: 120 })
  const { browser, page } = await connect(cdp_ws_url)
  const good = await zipOf(messagingExtension('good', 1))
  const bad = await zipOf({
    'manifest.json': JSON.stringify({
      manifest_version: 3,
      name: 'bad',
      version: '1',
      background: { service_worker: 'none.js' },
    }),
  })
  const outdated = await zipOf({ 'manifest.json': JSON.stringify({ manifest_version: 2, name: 'old', version: '1' }) })
  const nested = await zipOf(
    Object.fromEntries(Object.entries(messagingExtension('nested', 3)).map(([name, text]) => [`folder/${name}`, text])),
  )

  const isBad = { status: 400, message: /The extension bad cannot be loaded: .*background script/ }
  await assert.rejects(load(session_id, { good, other: await zipOf(messagingExtension('other', 2)), bad }), isBad)
  await page.goto(`${pages.url}/visit`)
  assert.deepEqual(await answersIn(page, []), {})
  await until('no worker of the first', async () => (await workersOf(cdp_ws_url)).length === 0, { limitSeconds: 60 })

  await Promise.all([load(session_id, { good }), load(session_id, { nested })])
  await page.reload()
  assert.deepEqual(await answersIn(page, ['good', 'nested']), { ext: '1', good: '1', nested: '3' })

  await assert.rejects(load(session_id, { good }), { status: 400, message: /name is taken/ })
  await assert.rejects(load(session_id, { outdated }), { status: 400 })
  await assert.rejects(client.browsers.create({ headless: true, extensions: [{ id: 'no-such' }] }), { status: 404 })
  const { id } = await client.extensions.upload({ file: fileOf(bad) })
  await assert.rejects(client.browsers.create({ headless: true, extensions: [{ id }] }), {
    status: 400,
    message: /cannot be loaded: .*background script/,
  })

  await browser.close()
  await client.browsers.deleteByID(session_id)
})

test('an extension that needs a policy blocks requests from the start, when added later, and after a crash', async () => {
  const manifest = {
    manifest_version: 3,
    name: 'blocker',
    version: '1.2',
    permissions: ['webRequest', 'webRequestBlocking'],
    host_permissions: ['<all_urls>'],
    background: { service_worker: 'worker.js' },
  }
  const files = {
    'manifest.json': JSON.stringify(manifest),
    'worker.js': `chrome.webRequest.onBeforeRequest.addListener(() => ({ cancel: true }), { urls: ['*://*/blocked'] }, ['blocking'])`,
  }
  const { crx, id } = packCrx(await zipOf(files))
  const update = `<?xml version='1.0'?><gupdate xmlns='http://www.google.com/update2/response' protocol='2.0'>
    <app appid='${id}'><updatecheck codebase='http://updates.test/it.crx' version='1.2'/></app></gupdate>`
  const zip = await zipOf({ ...files, 'update.xml': update, 'it.crx': crx })
  await assert.rejects(client.extensions.upload({ file: fileOf(await zipOf(files)) }), {
    status: 400,
    message: /update\.xml/,
  })
  const uploaded = await client.extensions.upload({ file: fileOf(zip) })

  const started = await client.browsers.create({
    headless: true,
    extensions: [{ id: uploaded.id }],
    timeout_seconds: 120,
  })
  const first = await connect(started.cdp_ws_url)
  assert.ok(await isBlocked(first.browser, `${pages.url}/blocked`))
  await first.page.goto(`${pages.url}/visit`)
  await first.browser.close()
  await client.browsers.deleteByID(started.session_id)

  const { session_id, cdp_ws_url } = await client.browsers.create({ headless: false, timeout_seconds: 120 })
  await load(session_id, { blocker: zip, talker: await zipOf(messagingExtension('talker', 7)) })
  const second = await connect(cdp_ws_url)
  assert.ok(await isBlocked(second.browser, `${pages.url}/blocked`))
  await second.page.goto(`${pages.url}/visit`)
  assert.equal((await answersIn(second.page, ['talker'])).talker, '7')
  process.kill(await browserProcess(session_id), 'SIGKILL')
  const third = await connect(cdp_ws_url)
  assert.ok(await isBlocked(third.browser, `${pages.url}/blocked`))
  await third.page.goto(`${pages.url}/visit`)
  assert.equal((await answersIn(third.page, ['talker'])).talker, '7')
  const updates = `http://127.0.0.1:10001/extensions/${id}/update.xml`
  const asked = await client.browsers.process.exec(session_id, { command: 'curl', args: ['-s', updates] })
  assert.match(Buffer.from(asked.stdout_b64 ?? '', 'base64').toString(), /gupdate/)
  await assert.rejects(third.page.goto(updates), /ERR_CONNECTION_RESET/, 'pages see nothing of it')
  const { page } = await connect(cdp_ws_url)
  await page.goto(`${pages.url}/visit`)
  assert.match(String(await page.evaluate(`fetch('${updates}', { mode: 'no-cors' }).catch(String)`)), /Failed to fetch/)
  await second.browser.close()
  await third.browser.close()
  await client.browsers.deleteByID(session_id)
})

test('a hostile extension cannot leave its machine', async () => {
  let connections = 0
  const canary = createServer((_request, response) => response.end('reached')).on('connection', () => connections++)
  await new Promise<void>((resolve) => canary.listen(0, testHost, resolve))
  const { port } = canary.address() as AddressInfo
  const hostile = await zipOf({
    'manifest.json': JSON.stringify({
      manifest_version: 3,
      name: 'hostile',
      version: '1',
      permissions: ['proxy'],
      host_permissions: ['<all_urls>', 'file:///*'],
      background: { service_worker: 'worker.js' },
    }),
    'worker.js': '',
  })
  const { session_id, cdp_ws_url } = await client.browsers.create({ headless: true, timeout_seconds: 120 })
  await load(session_id, { hostile })
  const { browser, page } = await connect(cdp_ws_url)
  const context = browser.contexts()[0]
  const worker = context?.serviceWorkers()[0] ?? (await context?.waitForEvent('serviceworker'))
  assert.ok(worker)
  const fetched = (url: string) =>
    worker.evaluate(
      (url) =>
        fetch(url).then(
          (answer) => answer.text(),
          () => 'refused',
        ),
      url,
    )
  const useProxy = (value: object) =>
    worker.evaluate(`chrome.proxy.settings.set(${JSON.stringify({ value, scope: 'regular' })})`)

  assert.match(await fetched(`${pages.url}/visit`), /Visit/)
  assert.doesNotMatch(await fetched(`http://127.0.0.1:${port}/`), /reached/)
  assert.equal(await fetched(`http://${hostName}:${port}/`), 'refused')
  await useProxy({ mode: 'direct' })
  assert.equal(await fetched(`http://${hostName}:${port}/`), 'refused')
  for (const host of ['127.0.0.1', hostName]) {
    const rules = { singleProxy: { scheme: 'http', host, port } }
    await useProxy({ mode: 'fixed_servers', rules })
    assert.equal(await fetched(`${pages.url}/visit`), 'refused')
    await assert.rejects(page.goto(`${pages.url}/visit`), /ERR_/)
  }
  assert.equal(connections, 0)

  await browser.close()
  await client.browsers.deleteByID(session_id)
  canary.close()
})
