import assert from 'node:assert/strict'
import Kernel from '@onkernel/sdk'

const { BERTH_URL, BERTH_API_KEY, SITE } = process.env
const client = new Kernel({ apiKey: BERTH_API_KEY, baseURL: BERTH_URL })
const { session_id: id } = await client.browsers.create({ headless: true })
const listed = await Array.fromAsync(client.browsers.list())
assert.ok(listed.some(({ session_id }) => session_id === id))
const { result } = await client.browsers.playwright.execute(id, {
  code: `await page.goto('${SITE}'); return page.title()`,
})
assert.equal(result, 'Form')
const { exit_code, stdout_b64 } = await client.browsers.process.exec(id, { command: 'echo', args: ['here'] })
assert.deepEqual([exit_code, Buffer.from(stdout_b64, 'base64').toString()], [0, 'here\n'])
await client.browsers.fs.writeFile(id, 'content', { path: '/tmp/file' })
assert.equal(await (await client.browsers.fs.readFile(id, { path: '/tmp/file' })).text(), 'content')
const picture = Buffer.from(await (await client.browsers.computer.captureScreenshot(id)).arrayBuffer())
assert.equal(picture.subarray(1, 4).toString(), 'PNG')
await client.browsers.deleteByID(id)
await assert.rejects(client.browsers.retrieve(id), (error) => error.status === 404)
