import assert from 'node:assert/strict'
import lighthouse from 'lighthouse'
import puppeteer from 'puppeteer-core'

const { CDP_WS_URL, SITE } = process.env
const browser = await puppeteer.connect({ browserWSEndpoint: CDP_WS_URL })
const page = await browser.newPage()
const flags = { logLevel: 'error', onlyCategories: ['performance', 'accessibility'] }
const { lhr } = await lighthouse(`${SITE}/`, flags, undefined, page)
assert.equal(lhr.runtimeError, undefined)
assert.ok(lhr.categories.performance.score > 0)
await browser.disconnect()
