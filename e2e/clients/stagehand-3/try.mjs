import assert from 'node:assert/strict'
import { Stagehand } from 'stagehand'

const { CDP_WS_URL, SITE } = process.env
const stagehand = new Stagehand({
  ...{ env: 'LOCAL', verbose: 0, disablePino: true },
  localBrowserLaunchOptions: { cdpUrl: CDP_WS_URL },
})
await stagehand.init()
const [page] = stagehand.context.pages()
await page.goto(SITE)
await page.locator('#q').fill('sent')
await page.locator('#send').click()
assert.equal(await page.title(), 'sent')
assert.equal((await page.screenshot()).subarray(1, 4).toString(), 'PNG')
await stagehand.close()
