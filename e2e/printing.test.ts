import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type Browser, chromium } from 'playwright-core'
import { Berth } from './testing/berth.ts'

const berth = await Berth.borrow()
const client = await berth.client()
after(() => berth[Symbol.asyncDispose]())

for (const [kind, options] of Object.entries({
  headful: { headless: false },
  headless: { headless: true },
  'stealthy headless': { headless: true, stealth: true },
})) {
  test(`window.print() does not block in a ${kind} session, and its pages print to PDF`, async () => {
    const { session_id: id, cdp_ws_url } = await client.browsers.create({ ...options, timeout_seconds: 300 })
    const browser: Browser = await chromium.connectOverCDP(cdp_ws_url)
    const page = browser.contexts()[0]?.pages()[0]
    assert.ok(page)
    await page.setContent('<h1>Print me</h1>')
    const pdf = await page.pdf()

    await page.evaluate('window.print()')

    assert.equal(await page.evaluate('1 + 1'), 2)
    assert.ok((await page.screenshot()).length > 0)
    assert.equal(pdf.subarray(0, 5).toString(), '%PDF-')
    await browser.close()
    await client.browsers.deleteByID(id)
  })
}
