import assert from 'node:assert/strict'
import { chromium } from 'playwright-core'

const { CDP_WS_URL, CDP_HTTP_URL, SITE } = process.env
for (const address of [CDP_WS_URL, CDP_HTTP_URL]) {
  const browser = await chromium.connectOverCDP(address)
  const [page] = browser.contexts()[0].pages()
  await page.goto(SITE)
  await page.fill('#q', 'sent')
  await page.click('#send')
  assert.equal(await page.title(), 'sent')
  assert.equal((await page.screenshot()).subarray(1, 4).toString(), 'PNG')
  const own = await browser.newContext()
  const second = await own.newPage()
  await second.goto(`${SITE}/second`)
  assert.equal(await second.textContent('h1'), 'The second page')
  await browser.close()
}
