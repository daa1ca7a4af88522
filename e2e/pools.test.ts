import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { chromium } from 'playwright-core'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { startPages } from './testing/pages.ts'

const pages = await startPages()
pages.serve('/page', '<!doctype html><title>Page</title><h1>here</h1>')
const berth = await Berth.borrow()
const client = await berth.client()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})

before(async () => {
  await client.browserPools.create({ name: 'warm', size: 1, headless: true, fill_rate_per_minute: 1000 })
})

/** Acquires a browser with the SDK; the pool will have one soon. */
async function acquire(options: Parameters<typeof client.browserPools.acquire>[1] = {}) {
  return until('a browser of the pool', () => client.browserPools.acquire('warm', options), { limitSeconds: 120 })
}

test('a reused browser keeps its tabs and cookies, and disconnects its earlier caller', async () => {
  const first = await acquire({ name: 'first', tags: { turn: '1' } })
  assert.deepEqual([first.pool?.name, first.name, first.timeout_seconds], ['warm', 'first', 600])
  const browser = await chromium.connectOverCDP(first.cdp_ws_url)
  const page = browser.contexts()[0]?.pages()[0]
  await page?.goto(`${pages.url}/page`)
  await page?.evaluate("document.cookie = 'kept=yes; max-age=1000'")
  const running = await client.browsers.process.spawn(first.session_id, { command: 'sleep', args: ['4242'] })
  assert.ok(running.pid)
  const socket = await CdpClient.open(first.cdp_ws_url)
  const isCut = Promise.all([once(socket.socket, 'close'), new Promise((cut) => browser.once('disconnected', cut))])

  await client.browserPools.release('warm', { session_id: first.session_id })

  await isCut
  await assert.rejects(CdpClient.open(first.cdp_ws_url), /404/)
  await assert.rejects(client.browsers.retrieve('first'), { status: 404 })
  const second = await acquire()
  assert.deepEqual([second.session_id, second.name, second.tags], [first.session_id, undefined, undefined])
  const again = await chromium.connectOverCDP(second.cdp_ws_url)
  const kept = again.contexts()[0]?.pages()[0]
  assert.equal(kept?.url(), `${pages.url}/page`)
  assert.equal(await kept?.evaluate('document.cookie'), 'kept=yes')
  await again.close()
  await assert.rejects(CdpClient.open(first.cdp_ws_url), /401/)
  await client.browserPools.release('warm', { session_id: second.session_id })
})

test('a browser that is not reused is replaced, and the next caller waits for a new one', async () => {
  const first = await acquire()
  await client.browsers.fs.writeFile(first.session_id, Buffer.from('secret'), { path: '/tmp/a-secret.txt' })
  const waiting = acquire({ start_url: `${pages.url}/page` })

  await client.browserPools.release('warm', { session_id: first.session_id, reuse: false })

  const second = await waiting
  assert.notEqual(second.session_id, first.session_id)
  assert.equal(second.start_url, `${pages.url}/page`)
  const tab = await chromium.connectOverCDP(second.cdp_ws_url)
  const [page] = tab.contexts()[0]?.pages() ?? []
  await page?.waitForURL(`${pages.url}/page`)
  assert.equal(await page?.evaluate('document.cookie'), '')
  await tab.close()
  await assert.rejects(client.browsers.fs.readFile(second.session_id, { path: '/tmp/a-secret.txt' }), { status: 404 })
  await client.browserPools.release('warm', { session_id: second.session_id })
})

test('a pool is updated, flushed and deleted by the official client', async () => {
  const updated = await client.browserPools.update('warm', { viewport: { width: 800, height: 600 } })
  assert.deepEqual(updated.browser_pool_config.viewport, { width: 800, height: 600 })
  await client.browserPools.flush('warm')
  const browser = await acquire()
  assert.deepEqual([browser.viewport?.width, browser.viewport?.height], [800, 600])
  const listed = await Array.fromAsync(client.browserPools.list({ query: 'war' } as never))
  assert.deepEqual(
    listed.map(({ available_count, acquired_count }) => [available_count, acquired_count]),
    [[0, 1]],
  )

  await assert.rejects(client.browserPools.delete('warm'), { status: 400 })
  await client.browserPools.delete('warm', { force: true })

  await assert.rejects(client.browserPools.retrieve('warm'), { status: 404 })
  await until('the end of the browser', () => client.browsers.retrieve(browser.session_id).catch(() => true), {
    limitSeconds: 20,
  })
})
