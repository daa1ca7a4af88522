import assert from 'node:assert/strict'
import puppeteer from 'puppeteer-core'

const { CDP_WS_URL, CDP_HTTP_URL, WEBDRIVER_WS_URL, SITE } = process.env
const ways = [
  { browserWSEndpoint: CDP_WS_URL },
  { browserURL: CDP_HTTP_URL },
  { browserWSEndpoint: WEBDRIVER_WS_URL, protocol: 'webDriverBiDi' },
]
for (const way of ways) {
  const browser = await puppeteer.connect({ ...way, defaultViewport: null })
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
}
