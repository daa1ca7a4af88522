import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { chromium, type Page } from 'playwright-core'
import { noCompose, TestCompose } from './test-compose.ts'

/** On the first page of the session. */
async function onPage<T>(address: string, act: (page: Page) => Promise<T>): Promise<T> {
  const browser = await chromium.connectOverCDP(address)
  try {
    return await act(browser.contexts()[0]?.pages()[0] ?? assert.fail('there is no page'))
  } finally {
    await browser.close()
  }
}

describe('compose.yaml', { skip: noCompose ?? false }, async () => {
  if (noCompose !== undefined) return
  const berth = new TestCompose()
  after(() => berth[Symbol.asyncDispose]())

  it('starts a berth that becomes healthy', async () => {
    await berth.start()

    assert.deepEqual((await berth.client().browsers.list()).items, [])
  })

  it('has all that doctor asks of a host', async () => {
    const findings = await berth.execute('berth', 'doctor')

    assert.match(findings, /\.\/berth serve will work here/)
    assert.doesNotMatch(findings, /^failure/m)
  })

  it('serves headless and headful sessions, which load pages by egress', async () => {
    for (const headless of [true, false]) {
      const session = await berth.client().browsers.create({ headless })

      const title = await onPage(session.cdp_ws_url, async (page) => {
        await page.goto(berth.pageUrl)
        return page.title()
      })

      assert.equal(title, 'from the network')
      if (!headless) assert.equal((await fetch(session.browser_live_view_url ?? '')).status, 200)
      await berth.client().browsers.deleteByID(session.session_id)
    }
  })

  it('keeps sessions from berth itself and from the network of the container', async () => {
    const session = await berth.client().browsers.create({ headless: true })
    const addresses = ['http://127.0.0.1:8080/', 'http://berth:8080/', 'http://pages:8082/', 'http://169.254.169.254/']

    const results = await onPage(session.cdp_ws_url, (page) =>
      Promise.all(
        addresses.map((address) =>
          page.evaluate(
            (url) =>
              fetch(url, { mode: 'no-cors' }).then(
                () => 'reached',
                () => 'refused',
              ),
            address,
          ),
        ),
      ),
    )

    assert.deepEqual(
      results,
      addresses.map(() => 'refused'),
    )
    await berth.client().browsers.deleteByID(session.session_id)
  })

  it('runs everything as an ordinary user without capabilities', async () => {
    const status = await berth.execute('cat', '/proc/1/status')

    for (const { user, command } of await berth.processes()) assert.equal(user, '1000', command)
    for (const set of ['CapPrm', 'CapEff', 'CapBnd']) assert.match(status, new RegExp(`^${set}:\\t0+$`, 'm'))
    assert.match(status, /^NoNewPrivs:\t1$/m)
  })

  it('ends the sessions of a container that was killed, and leaves nothing of them', async () => {
    const session = await berth.client().browsers.create({ headless: true })
    const before = await berth.machines()

    await berth.killAndStart()

    await assert.rejects(berth.client().browsers.retrieve(session.session_id), { status: 404 })
    const all = await berth.client().browsers.list({ include_deleted: true })
    const left = all.items.find(({ session_id }) => session_id === session.session_id)
    assert.ok(left?.deleted_at, 'it is deleted')
    const now = await berth.machines()
    assert.ok(before.length > 0)
    assert.deepEqual(
      before.filter((machine) => now.includes(machine)),
      [],
    )
    const next = await berth.client().browsers.create({ headless: true })
    assert.equal(await onPage(next.cdp_ws_url, (page) => page.evaluate(() => 1 + 1)), 2)
  })
})
