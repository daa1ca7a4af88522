import assert from 'node:assert/strict'
import { getExtensionArchive, localBrowser, Stagehand } from '@browserbasehq/stagehand'

const { BERTH_URL, BERTH_API_KEY, SESSION_ID, CDP_WS_URL, SITE } = process.env
// It works through an extension, which it cannot load from the local disk into a remote browser.
const form = new FormData()
form.append('extensions.name', 'stagehand')
form.append('extensions.zip_file', new Blob([await getExtensionArchive()]), 'stagehand.zip')
const headers = { authorization: `Bearer ${BERTH_API_KEY}` }
const answer = await fetch(`${BERTH_URL}/browsers/${SESSION_ID}/extensions`, { method: 'POST', headers, body: form })
assert.equal(answer.status, 201, await answer.text())
// A session has its own loopback. Inside it, berth is at the host's name.
const extensionCdpUrl = CDP_WS_URL.replace('127.0.0.1', 'host.berth.internal')
const browser = await localBrowser.connect({ cdpUrl: CDP_WS_URL, extensionCdpUrl })
const stagehand = await Stagehand.create({
  browser,
  model: { modelName: 'openai/gpt-4o', apiKey: 'none' },
})
const [page] = await browser.context.pages()
await page.goto(SITE)
await page.locator('#q').fill('sent')
await page.locator('#send').click()
assert.equal(await page.title(), 'sent')
await stagehand.close()
await browser.disconnect()
