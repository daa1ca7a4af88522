import assert from 'node:assert/strict'
import puppeteer from 'puppeteer-core'

const { CDP_WS_URL, SITE } = process.env
const browser = await puppeteer.connect({ browserWSEndpoint: CDP_WS_URL, defaultViewport: null })
const page = await browser.newPage()
await page.goto(SITE)
await page.type('#q', 'sent')
await page.click('#send')
assert.equal(await page.title(), 'sent')
assert.equal(
  Buffer.from(await page.screenshot())
    .subarray(1, 4)
    .toString(),
  'PNG',
)
await page.close()
await browser.disconnect()
