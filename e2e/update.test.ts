import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { type Browser, chromium, type Page } from 'playwright-core'
import { Berth } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { startPages } from './testing/pages.ts'
import { browserProcess } from './testing/processes.ts'

const pages = await startPages()
const berth = await Berth.borrow()
const client = await berth.client()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})

const sizes = [
  { width: 1601, height: 903 },
  { width: 777, height: 1333 },
  { width: 1280, height: 800 },
]
/** Narrower than any tab strip. */
const phone = { width: 390, height: 844 }
/** The height in a headful window outside kiosk mode. */
const tabStripHeight = 87

const inner = 'innerWidth + "x" + innerHeight'
const screen = 'screen.width + "x" + screen.height'

for (const { kind, headless, kiosk_mode } of [
  { kind: 'headless', headless: true, kiosk_mode: false },
  { kind: 'headful', headless: false, kiosk_mode: false },
  { kind: 'kiosk', headless: false, kiosk_mode: true },
]) {
  test(`a ${kind} session changes its size while its clients continue to work`, async (context) => {
    const session = await client.browsers.create({ headless, kiosk_mode, start_url: pages.url })
    const browser = await chromium.connectOverCDP(session.cdp_ws_url)
    let isConnected = true
    browser.on('disconnected', () => {
      isConnected = false
    })
    const [first, second] = await twoPages(browser)
    await first.waitForURL(`${pages.url}/`)
    for (const page of [first, second]) await page.evaluate('globalThis.mark = 1')
    const pid = await browserProcess(session.session_id)
    const frame = headless || kiosk_mode ? 0 : tabStripHeight

    for (const viewport of frame === 0 ? [phone, ...sizes] : sizes) {
      const size = `${viewport.width}x${viewport.height - frame}`
      const watched = second.waitForFunction(`${inner} === '${size}'`, undefined, { polling: 'raf' })
      const begin = performance.now()

      const [updated] = await Promise.all([client.browsers.update(session.session_id, { viewport }), watched])

      context.diagnostic(`${kind} ${size}: seen by the page after ${Math.round(performance.now() - begin)} ms`)
      const { width, height } = updated.viewport ?? {}
      assert.deepEqual([width, height], [viewport.width, viewport.height])
      const third = await browser.contexts()[0]?.newPage()
      for (const page of [first, second, third]) {
        assert.equal(await page?.evaluate(inner), size)
        assert.equal(await page?.evaluate(screen), `${viewport.width}x${viewport.height}`)
      }
      await third?.close()
    }

    for (const page of [first, second]) assert.equal(await page.evaluate('globalThis.mark'), 1, 'the same document')
    assert.equal(await browserProcess(session.session_id), pid, 'the same browser')
    assert.ok(isConnected, 'the same connection')
    await browser.close()
    await comesBack(session, `1280x${800 - frame}`)
    await client.browsers.deleteByID(session.session_id)
  })
}

/** Asserts that a browser restarts after a crash with the size that it had. */
async function comesBack(session: { session_id: string; cdp_ws_url: string }, size: string): Promise<void> {
  const lost = await CdpClient.open(session.cdp_ws_url)
  process.kill(await browserProcess(session.session_id), 'SIGKILL')
  await once(lost.socket, 'close')
  const browser = await chromium.connectOverCDP(session.cdp_ws_url)
  await browser.contexts()[0]?.pages()[0]?.waitForFunction(`${inner} === '${size}'`)
  await browser.close()
}

test('start_url navigates the page in front, without waiting for the result', async () => {
  pages.serve('/new', '<title>New</title>')
  pages.serve('/never', () => {})
  const { session_id, cdp_ws_url } = await client.browsers.create({ headless: true })
  const browser = await chromium.connectOverCDP(cdp_ws_url)
  const [first, second] = await twoPages(browser)
  const update = (start_url: string) =>
    client.browsers.update(session_id, { start_url } as Parameters<typeof client.browsers.update>[1])

  const navigated = await update(`${pages.url}/new`)
  await second.waitForURL(`${pages.url}/new`)
  await first.bringToFront()
  await update('chrome://version/')
  await first.waitForURL('chrome://version/')
  const begin = performance.now()
  const endless = await update(`${pages.url}/never`)
  const odd = await update('no such://address')
  const unchanged = await update('')

  assert.ok(performance.now() - begin < 30_000, 'the answers came although a page does not')
  const asked = [navigated, endless, odd, unchanged].map((record) => (record as { start_url?: string }).start_url)
  assert.deepEqual(asked, [`${pages.url}/new`, `${pages.url}/never`, 'no such://address', 'no such://address'])
  assert.equal(second.url(), `${pages.url}/new`)
  await browser.close()
  await client.browsers.deleteByID(session_id)
})

test('of sessions that are renamed to one name at once, one gets the name (case 27)', async () => {
  const sessions = []
  for (let count = 0; count < 3; count += 1) sessions.push(await client.browsers.create({ headless: true }))

  const outcomes = await Promise.allSettled(
    sessions.map(({ session_id }) => client.browsers.update(session_id, { name: 'one' })),
  )

  const won = outcomes.filter((outcome) => outcome.status === 'fulfilled')
  assert.equal(won.length, 1)
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') assert.equal(outcome.reason.status, 409)
  }
  assert.equal((await client.browsers.retrieve('one')).session_id, won[0]?.value.session_id)
  await Promise.all(sessions.map(({ session_id }) => client.browsers.deleteByID(session_id)))
})

test('invalid bodies of an update are refused, and the session does not change (case 29)', async (context) => {
  const created = await client.browsers.create({ headless: true, name: 'steady', tags: { k: 'v' } })
  for (const { what, body, headers, status } of strangeBodies()) {
    await context.test(what, async () => {
      const init: RequestInit = { method: 'PATCH', headers: { 'content-type': 'application/json', ...headers } }
      const response = await berth.request('/browsers/steady', body === undefined ? init : { ...init, body })
      const answer = (await response.json()) as { code?: string; message?: string; name?: string; tags?: unknown }

      assert.equal(response.status, status)
      if (status !== 200) assert.ok(answer.code && answer.message)
      const good = await client.browsers.update(created.session_id, { name: 'steady', tags: { k: 'v' } })
      assert.deepEqual([good.name, good.tags, good.viewport], ['steady', { k: 'v' }, created.viewport])
    })
  }
  await client.browsers.deleteByID(created.session_id)
})

interface StrangeBody {
  readonly what: string
  readonly body?: string | Uint8Array<ArrayBuffer>
  readonly headers?: Record<string, string>
  readonly status: number
}

function strangeBodies(): readonly StrangeBody[] {
  const tags = (count: number) =>
    JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, ''])))
  return [
    { what: 'a body that is cut off', body: '{"name":"x', status: 400 },
    { what: 'no body', status: 400 },
    ...['[]', '1', '"x"', 'null'].map((body) => ({ what: body, body, status: 400 })),
    { what: 'a name given twice: the last counts', body: '{"name":"x","name":"steady"}', status: 200 },
    { what: 'a name of 100,000 characters', body: JSON.stringify({ name: 'n'.repeat(100_000) }), status: 400 },
    { what: '51 tags', body: `{"tags":${tags(51)}}`, status: 400 },
    { what: '50 tags', body: `{"tags":${tags(50)}}`, status: 200 },
    { what: 'a tag __proto__', body: '{"tags":{"__proto__":"x"}}', status: 400 },
    { what: 'a tag constructor', body: '{"tags":{"constructor":"x"}}', status: 200 },
    { what: 'a tag of an emoji', body: '{"tags":{"😀":"x"}}', status: 400 },
    { what: 'an unpaired surrogate', body: '{"start_url":"\\ud800"}', status: 400 },
    { what: 'no UTF-8', body: new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), status: 400 },
    { what: '100,000 levels', body: `{"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, status: 400 },
    { what: '50 MB', body: `{"x":"${'x'.repeat(50_000_000)}"}`, status: 413 },
    { what: 'text', body: '{}', headers: { 'content-type': 'text/plain' }, status: 415 },
    { what: 'a form', body: 'name=x', headers: { 'content-type': 'application/x-www-form-urlencoded' }, status: 415 },
    { what: 'a body that claims to be compressed', body: '{}', headers: { 'content-encoding': 'gzip' }, status: 415 },
  ]
}

async function twoPages(browser: Browser): Promise<readonly [Page, Page]> {
  const [context] = browser.contexts()
  const first = context?.pages()[0]
  const second = await context?.newPage()
  assert.ok(first && second)
  return [first, second]
}
