import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import Kernel, { toFile } from '@onkernel/sdk'
import { chromium } from 'playwright-core'
import { until } from './fault/testing/until.ts'
import { Berth, launch } from './testing/berth.ts'
import { BidiClient } from './testing/browsers/bidi.ts'
import { zipOf } from './testing/browsers/extension-files.ts'
import { CdpClient } from './testing/cdp.ts'
import { createCheckedFetch } from './testing/checked-fetch.ts'
import { hostName, startPages } from './testing/pages.ts'
import { sdkApp } from './testing/sdk-app.ts'
import { SharedBerths } from './testing/shared-berths.ts'

const pages = await startPages()
pages.serve('/page', '<!doctype html><title>Page</title><h1>here</h1>')
const shared = await SharedBerths.open(Berth.startOne)
const environment = { BERTH_EGRESS_ALLOW: pages.allowed, BERTH_MAX_SESSIONS: '4' }
const [first, second] = [await shared.start({ environment }), await shared.start({ environment })]
after(async () => {
  await shared[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})
const [one, two] = [await first.client(), await second.client()]
/** Sends each request to another server than the previous one. */
const both = new Kernel({
  apiKey: Berth.testKey,
  baseURL: shared.url,
  maxRetries: 0,
  defaultHeaders: { connection: 'close' },
  fetch: await createCheckedFetch(shared.url),
})

test('a session is available through both servers, and is deleted through either', async () => {
  const session = await one.browsers.create({ headless: true, name: 'shared' })
  const { width = 0, height = 0 } = session.viewport ?? {}

  const renamed = await two.browsers.update('shared', { name: 'renamed', viewport: { width: 900, height: 700 } })
  const found = await Promise.all([one, two].map((client) => client.browsers.retrieve('renamed')))
  const lists = await Promise.all([one, two].map((client) => Array.fromAsync(client.browsers.list())))
  await two.browsers.deleteByID('renamed')

  assert.notDeepEqual([width, height], [900, 700])
  assert.deepEqual([renamed.viewport?.width, renamed.viewport?.height], [900, 700])
  assert.deepEqual(new Set(found.map(({ session_id }) => session_id)), new Set([session.session_id]))
  assert.deepEqual(
    lists.map((sessions) => sessions.map(({ session_id }) => session_id)),
    [[session.session_id], [session.session_id]],
  )
  await assert.rejects(one.browsers.deleteByID(session.session_id), { status: 404 })
})

/** Used by the tests up to the one of its own address, which deletes it. */
let session: Awaited<ReturnType<typeof one.browsers.create>>

test('Playwright, BiDi and raw CDP work at the common address, whichever server gets a connection', async () => {
  session = await both.browsers.create({ headless: true, timeout_seconds: 300 })

  for (const _server of [1, 2]) {
    const browser = await chromium.connectOverCDP(session.cdp_ws_url)
    const page = await browser.contexts()[0]?.newPage()
    await page?.goto(`${pages.url}/page`)
    assert.equal(await page?.textContent('h1'), 'here')
    assert.ok((await page?.screenshot())?.length)
    await browser.close()

    const bidi = await BidiClient.open(session.webdriver_ws_url as string)
    await bidi.send('session.new', { capabilities: {} })
    const { contexts } = await bidi.send('browsingContext.getTree', {})
    assert.ok(contexts.length > 0)
    bidi.socket.terminate()

    const cdp = await CdpClient.open(session.cdp_ws_url)
    const tab = await cdp.openPage()
    assert.equal(String(await cdp.evaluate(tab, "'x'.repeat(5_000_000)")).length, 5_000_000)
    await cdp.close()
  }
})

test('files and the output of processes are streamed through the other server', async () => {
  const { session_id: id, base_url: base, cdp_ws_url: cdp } = session
  const content = 'a'.repeat(3_000_000)

  await two.browsers.fs.writeFile(id, content, { path: '/tmp/large' })
  const read = await (await two.browsers.fs.readFile(id, { path: '/tmp/large' })).text()
  const { process_id: processId = '' } = await two.browsers.process.spawn(id, {
    command: 'sh',
    args: ['-c', 'read line; echo "got $line"; sleep 600'],
  })
  const stream = await two.browsers.process.stdoutStream(processId, { id })
  await two.browsers.process.stdin(processId, { id, data_b64: Buffer.from('hello\n').toString('base64') })
  const chunks: string[] = []
  for await (const event of stream) {
    if (event.data_b64) chunks.push(Buffer.from(event.data_b64, 'base64').toString())
    if (chunks.join('').includes('got hello')) break
  }
  const atSecond = `${second.url}${new URL(base as string).pathname}`
  const byToken = await fetch(`${atSecond}/fs/file_info${new URL(cdp).search}&path=/tmp/large`)

  assert.equal(read.length, content.length)
  assert.match(chunks.join(''), /got hello/)
  assert.equal(((await byToken.json()) as { size_bytes: number }).size_bytes, content.length)
  await two.browsers.process.kill(processId, { id, signal: 'KILL' })
})

test('a session of one server starts with a profile that a session of the other has saved', async () => {
  const profile = { name: 'travels', save_changes: true }
  await two.profiles.create({ name: profile.name })
  const cookie = { name: 'kept', value: 'yes', domain: 'site.test', path: '/', expires: 4e9 }

  const saving = await one.browsers.create({ headless: true, profile })
  const cdp = await CdpClient.open(saving.cdp_ws_url)
  await cdp.send('Storage.setCookies', { cookies: [cookie] })
  await two.browsers.deleteByID(saving.session_id)
  const using = await two.browsers.create({ headless: true, profile })
  const { cookies } = await (await CdpClient.open(using.cdp_ws_url)).send('Storage.getCookies')

  assert.deepEqual(
    (cookies as (typeof cookie)[]).map(({ name, value }) => [name, value]),
    [['kept', 'yes']],
  )
  await one.browsers.deleteByID(using.session_id)
})

test('a session of one server starts with an extension that was uploaded to the other', async () => {
  const manifest = { manifest_version: 3, name: 'Shared', version: '1', content_scripts: [contentScript()] }
  const script = "document.documentElement.dataset.extension = 'runs'"
  const zip = await zipOf({ 'manifest.json': JSON.stringify(manifest), 'content.js': script })
  await one.extensions.upload({ name: 'shared', file: new File([new Uint8Array(zip)], 'shared.zip') })

  const session = await two.browsers.create({ headless: true, extensions: [{ name: 'shared' }] })
  const browser = await chromium.connectOverCDP(session.cdp_ws_url)
  const page = await browser.contexts()[0]?.newPage()
  await page?.goto(`${pages.url}/page`)
  await page?.waitForFunction("document.documentElement.dataset.extension === 'runs'")

  await browser.close()
  await one.browsers.deleteByID(session.session_id)
})

test('a session reaches itself at the address of another server, and nothing else there', async () => {
  const request = 'fetch(process.argv[1]).then(({ status }) => console.log(status), () => console.log(0))'
  const statusOf = async (path: string) => {
    const url = `${second.url}${path}`.replace('127.0.0.1', hostName)
    const { stdout_b64 } = await one.browsers.process.exec(session.session_id, {
      command: '/opt/berth/node',
      args: ['-e', request, url],
    })
    return Number(Buffer.from(stdout_b64 ?? '', 'base64').toString())
  }
  const own = `/s/${session.session_id}/json/version`

  // Each server learns of the others within ten seconds.
  await until('its own address', async () => (await statusOf(`${own}${new URL(session.cdp_ws_url).search}`)) === 200, {
    limitSeconds: 40,
  })

  assert.deepEqual([await statusOf(own), await statusOf('/docs'), await statusOf('/health')], [401, 403, 403])
  await two.browsers.deleteByID(session.session_id)
})

test('of twenty clients that compete for the last session on two servers, one gets it', async () => {
  const before = await Promise.all([one, two, one].map((client) => client.browsers.create({ headless: true })))

  const outcomes = await Promise.allSettled(
    Array.from({ length: 20 }, (_value, index) => (index % 2 === 0 ? one : two).browsers.create({ headless: true })),
  )

  const created = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
  const refused = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason.status] : []))
  assert.deepEqual([created.length, refused], [1, Array(19).fill(429)])
  for (const { session_id } of [...before, ...created]) await both.browsers.deleteByID(session_id)
})

test('an app is built once and invoked through either server, which can also cancel and report invocations of the other', async () => {
  const code = `
    import Kernel from '@onkernel/sdk'
    const app = new Kernel().app('shared')
    app.action('echo', async (ctx, payload) => payload)
    app.action('hang', async (ctx) => { console.log('hanging'); for (;;); })`
  const file = await toFile(await sdkApp({ 'index.mjs': code }), 'source.zip')
  const { id: deployment } = await one.deployments.create({ file, entrypoint_rel_path: 'index.mjs' })
  for await (const event of await two.deployments.follow(deployment)) {
    if (event.event === 'deployment_state' && event.deployment.status === 'running') break
  }
  const of = (action_name: string) => ({ app_name: 'shared', version: 'latest', action_name })

  const outputs = await Promise.all(
    [one, two].map((client, index) => client.invocations.create({ ...of('echo'), payload: `[${index}]` })),
  )
  const { id } = await one.invocations.create({ ...of('hang'), async: true })
  for await (const event of await two.invocations.follow(id)) {
    if (event.event === 'log' && event.message === 'hanging') break
  }
  const cancelled = await two.invocations.update(id, { status: 'failed' })

  assert.deepEqual(
    outputs.map(({ output }) => output),
    ['[0]', '[1]'],
  )
  assert.equal(cancelled.status, 'failed')
  assert.deepEqual((await one.invocations.retrieve(id)).status, 'failed')
  assert.equal((await one.invocations.create({ ...of('echo'), payload: '2' })).output, '2')
  await two.deployments.delete(deployment)
})

test('a caller that waits at one server gets the browser that is released at the other', async () => {
  await one.browserPools.create({ name: 'queue', size: 1, headless: true })
  const wait = { acquire_timeout_seconds: 45 }
  const holder = await until('the browser', () => two.browserPools.acquire('queue', wait), { limitSeconds: 60 })
  const left = new AbortController()
  const gone = one.browserPools.acquire('queue', wait, { signal: left.signal })
  const waiting = both.browserPools.acquire('queue', wait)
  assert.equal(await Promise.race([gone, waiting, delay(500, 'both wait')]), 'both wait')
  left.abort()
  await assert.rejects(gone)
  const releasedAt = performance.now()

  await one.browserPools.release('queue', { session_id: holder.session_id })
  const given = await waiting

  assert.equal(given?.session_id, holder.session_id)
  assert.ok(performance.now() - releasedAt < 10_000, 'long before its time is over')
  await one.browserPools.delete('queue', { force: true })
})

const other = 'http://127.0.0.1:9'
for (const [what, flags, changes, exitCode, named] of [
  ['that means to be alone', [], {}, 75, /BERTH_SERVER_ADDRESS/],
  [
    'with another master key',
    ['--server-address', other],
    { BERTH_MASTER_KEY: 'x'.repeat(20) },
    64,
    /BERTH_MASTER_KEY/,
  ],
  ['with other blobs', ['--server-address', other], { BERTH_S3_PREFIX: 'elsewhere/' }, 64, /uses other blobs/],
  [
    'with the address of another one',
    ['--server-address', first.url],
    {},
    64,
    /BERTH_SERVER_ADDRESS .* each server needs/,
  ],
] as const) {
  test(`a server ${what} is not started beside them, and reports what to change`, async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'berth-refused-'))
    const args = ['serve', '--port', '0', '--data-dir', folder.path, ...flags]
    const child = launch(args, { ...shared.storage.environment, ...changes })

    const [errors, [code]] = await Promise.all([
      text(child.stderr as NodeJS.ReadableStream as never),
      once(child, 'exit'),
    ])

    assert.equal(code, exitCode, errors)
    assert.match(errors, named)
  })
}

function contentScript() {
  return { matches: ['<all_urls>'], js: ['content.js'] }
}
