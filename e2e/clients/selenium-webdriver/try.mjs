import assert from 'node:assert/strict'
import { Builder, By, until } from 'selenium-webdriver'

const { WEBDRIVER_HTTP_URL, TOKEN, SITE } = process.env
// This client drops the query of an address, and sends the user information before the host.
const address = Object.assign(new URL(WEBDRIVER_HTTP_URL), { username: 'jwt', password: TOKEN, search: '' })
const driver = await new Builder().forBrowser('chrome').usingServer(address.href).build()
await driver.get(SITE)
await driver.findElement(By.id('q')).sendKeys('sent')
await driver.findElement(By.id('send')).click()
await driver.wait(until.titleIs('sent'), 5_000)
const first = await driver.getWindowHandle()
await driver.switchTo().newWindow('tab')
await driver.get(`${SITE}/second`)
assert.equal(await driver.findElement(By.css('h1')).getText(), 'The second page')
const bidi = await driver.getBidi()
const { result } = await bidi.send({ method: 'browsingContext.getTree', params: {} })
assert.ok(result.contexts.some(({ context }) => context === first))
const cdp = await driver.createCDPConnection('page')
const answer = await cdp.send('Runtime.evaluate', { expression: '6 * 7' })
assert.equal(answer.result.result.value, 42)
await driver.close()
await driver.switchTo().window(first)
assert.equal(await driver.getTitle(), 'sent')
await driver.quit()
process.exit(0) // Its CDP connection stays open.
