import assert from 'node:assert/strict'
import { remote } from 'webdriverio'

const { WEBDRIVER_HTTP_URL, TOKEN, SITE } = process.env
const { hostname, port, pathname } = new URL(WEBDRIVER_HTTP_URL)
const browser = await remote({
  ...{ protocol: 'http', hostname, port: Number(port), path: pathname, queryParams: { jwt: TOKEN } },
  ...{ logLevel: 'error', capabilities: { browserName: 'chrome' } },
})
assert.equal(browser.isBidi, true)
await browser.url(SITE)
await browser.$('#q').setValue('sent')
await browser.$('#send').click()
await browser.waitUntil(async () => (await browser.getTitle()) === 'sent')
const { contexts } = await browser.browsingContextGetTree({})
assert.equal(contexts[0].url, `${SITE}/`)
const mocked = await browser.mock(`${SITE}/second`)
mocked.respond('<title>Mocked</title>', { headers: { 'content-type': 'text/html' } })
await browser.url(`${SITE}/second`)
assert.equal(await browser.getTitle(), 'Mocked')
const puppeteer = await browser.getPuppeteer()
assert.ok((await puppeteer.pages()).length >= 1)
await browser.deleteSession()
process.exit(0) // Its Puppeteer connection stays open.
