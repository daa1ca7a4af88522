import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { chromium } from 'playwright-core'
import puppeteer from 'puppeteer-core'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { hostName, startPages } from './testing/pages.ts'

const pages = await startPages()
const berth = await Berth.borrow()
const client = await berth.client()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})
/** Started early, because it waits; the other tests run meanwhile. */
const idling = observeIdleTimeout()
idling.catch(() => {}) // The test that awaits it reports the error.

for (const headless of [true, false]) {
  const kind = headless ? 'headless' : 'headful'

  test(`a ${kind} session works from create to delete`, async () => {
    const created = await client.browsers.create({
      headless,
      name: `life-${kind}`,
      tags: { team: 'a b' },
      timeout_seconds: 90,
    })
    const retrieved = await client.browsers.retrieve(`life-${kind}`)
    const listed = await Array.fromAsync(client.browsers.list({ tags: { team: 'a b' } }))

    assert.match(created.session_id, /^[a-z][a-z0-9]{23}$/)
    assert.deepEqual(withoutUsage(retrieved), withoutUsage(created))
    assert.deepEqual(
      listed.map((session) => session.session_id),
      [created.session_id],
    )
    assert.deepEqual(
      {
        ...created,
        session_id: '',
        created_at: '',
        cdp_ws_url: '',
        webdriver_ws_url: '',
        base_url: '',
        ...(created.browser_live_view_url !== undefined && { browser_live_view_url: '' }),
        usage: undefined,
      },
      {
        session_id: '',
        created_at: '',
        cdp_ws_url: '',
        webdriver_ws_url: '',
        base_url: '',
        ...(!headless && { browser_live_view_url: '' }),
        usage: undefined,
        name: `life-${kind}`,
        tags: { team: 'a b' },
        region: 'us-east',
        memory: headless ? '1GiB' : '8GiB',
        headless,
        stealth: false,
        proxy: { mode: 'default' },
        disable_default_proxy: false,
        gpu: false,
        kiosk_mode: false,
        timeout_seconds: 90,
        viewport: { width: 1920, height: 1080, refresh_rate: 25 },
        telemetry: null,
      },
    )

    await client.browsers.deleteByID(`life-${kind}`)

    await assert.rejects(client.browsers.retrieve(created.session_id), { status: 404 })
    await assert.rejects(client.browsers.deleteByID(created.session_id), { status: 404 })
    const deleted = (await client.browsers.retrieve(created.session_id, {
      include_deleted: true,
    })) as typeof created & {
      usage_status?: string
    }
    assert.equal(deleted.usage_status, 'ready')
    assert.equal(
      deleted.usage?.uptime_ms,
      Date.parse(deleted.deleted_at ?? '') - Date.parse(created.created_at),
      'the uptime is the time from create to delete',
    )
    await assert.rejects(CdpClient.open(created.cdp_ws_url), /404|401/)
  })

  test(`Playwright controls a ${kind} session, whose page has the requested size`, async () => {
    const viewport = { width: 1203, height: 807 }
    const { cdp_ws_url, session_id } = await client.browsers.create({ headless, viewport, kiosk_mode: !headless })
    const browser = await chromium.connectOverCDP(cdp_ws_url)
    const page = browser.contexts()[0]?.pages()[0]
    assert.ok(page, 'the first context and page are there at once')
    const size = await page.evaluate('[innerWidth, innerHeight, screen.width, screen.height]')
    assert.deepEqual(size, [1203, 807, 1203, 807])

    await page.goto(pages.url)

    assert.equal(await page.textContent('h1'), 'Home')
    assert.equal(await page.evaluate('navigator.onLine'), true)
    await assert.rejects(page.goto(`${berth.url}/health`), /net::ERR_/, 'loopback is the session’s own')
    const other = await page.context().newPage()
    const answer = await other.goto(`http://${hostName}:${new URL(berth.url).port}/health`)
    assert.equal(answer?.status(), 403, 'berth itself is out of reach')
    assert.doesNotMatch(await other.content(), /database/)
    await browser.close()
    assert.equal((await client.browsers.retrieve(session_id)).session_id, session_id, 'the session outlives its client')
    await client.browsers.deleteByID(session_id)
  })

  test(`a ${kind} stealth session does not show that it is automated`, async () => {
    const { cdp_ws_url, session_id } = await client.browsers.create({ headless, stealth: true })
    const cdp = await CdpClient.open(cdp_ws_url)
    const page = await attachToFirstPage(cdp)

    assert.equal(await cdp.evaluate(page, 'navigator.webdriver'), false)
    assert.doesNotMatch(String(await cdp.evaluate(page, 'navigator.userAgent')), /Headless/)
    await cdp.close()
    await client.browsers.deleteByID(session_id)
  })
}

test('Puppeteer controls a session, and closing its browser only closes its connection', async () => {
  const { cdp_ws_url, session_id } = await client.browsers.create({ headless: true })
  const other = await CdpClient.open(cdp_ws_url)
  const browser = await puppeteer.connect({ browserWSEndpoint: cdp_ws_url })
  const page = await browser.newPage()

  await page.goto(pages.url)
  assert.equal(await page.title(), 'Home')
  await browser.close()

  assert.ok(await other.send('Browser.getVersion'), 'another client goes on')
  assert.equal((await client.browsers.retrieve(session_id)).session_id, session_id)
  await other.close()
  await client.browsers.deleteByID(session_id)
})

test('start_url, chrome_policy and telemetry are applied and echoed', async () => {
  pages.serve('/start', '<title>Start</title>')
  const chrome_policy = { BookmarkBarEnabled: true, HomepageLocation: `${pages.url}/home` }
  const created = await client.browsers.create({
    headless: true,
    start_url: `${pages.url}/start`,
    chrome_policy,
    telemetry: { browser: { console: { enabled: true } } },
  })
  const browser = await chromium.connectOverCDP(created.cdp_ws_url)

  const page = browser.contexts()[0]?.pages()[0]
  await page?.waitForURL(`${pages.url}/start`)
  const policyPage = await browser.contexts()[0]?.newPage()
  await policyPage?.goto('chrome://policy')

  assert.equal(created.start_url, `${pages.url}/start`)
  assert.deepEqual(created.chrome_policy, chrome_policy)
  assert.equal(created.telemetry?.browser?.console?.enabled, true)
  await policyPage?.getByText('HomepageLocation').first().waitFor()
  await browser.close()
  await client.browsers.deleteByID(created.session_id)
})

test('a session ends after its idle timeout, but not while a client is connected', async () => {
  const { connectedState, idleSeconds } = await idling

  assert.equal(connectedState, 200)
  // The timeout starts with the standby, which begins after 5 s. A busy machine is late for both.
  assert.ok(idleSeconds >= 9.9 && idleSeconds < 45, `ended after ${idleSeconds} s`)
})

/** Checks a session after more than its timeout with a client, and measures how long it lasts without one. */
async function observeIdleTimeout(): Promise<{ readonly connectedState: number; readonly idleSeconds: number }> {
  const { cdp_ws_url, session_id } = await client.browsers.create({ headless: true, timeout_seconds: 10 })
  const state = async () => (await berth.request(`/browsers/${session_id}`)).status
  const cdp = await CdpClient.open(cdp_ws_url)
  await new Promise((resolve) => setTimeout(resolve, 12_000)) // The wait is what the test is about.
  const connectedState = await state()
  await cdp.close()
  const closedAt = Date.now()
  await until('404', async () => (await state()) === 404, { limitSeconds: 60, everyMilliseconds: 250 })
  return { connectedState, idleSeconds: (Date.now() - closedAt) / 1000 }
}

async function attachToFirstPage(cdp: CdpClient): Promise<string> {
  const { targetInfos } = await cdp.send('Target.getTargets')
  const target = (targetInfos as { type: string; targetId: string }[]).find(({ type }) => type === 'page')
  const { sessionId } = await cdp.send('Target.attachToTarget', { targetId: target?.targetId, flatten: true })
  return sessionId as string
}

function withoutUsage<Record extends { usage?: unknown }>(record: Record): Omit<Record, 'usage'> {
  const { usage: _usage, ...rest } = record
  return rest
}
