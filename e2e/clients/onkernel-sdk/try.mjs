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

const { session_id: observed } = await client.browsers.create({
  headless: true,
  telemetry: { browser: { console: { enabled: true } } },
})
const log = (text) =>
  client.browsers.playwright.execute(observed, { code: `await page.evaluate(() => console.log('${text}'))` })
const nextLog = async (stream) => {
  for await (const { seq, event } of stream) if (event.type === 'console_log') return { seq, text: event.data.text }
}
const live = await client.browsers.telemetry.stream(observed)
await log('first')
const first = await nextLog(live)
assert.equal(first.text, 'first')
await log('second')
const resumed = await client.browsers.telemetry.stream(observed, { 'Last-Event-ID': String(first.seq) })
assert.equal((await nextLog(resumed)).text, 'second')
const ended = Array.fromAsync(await client.browsers.telemetry.stream(observed, { replay: 'all' }))
await client.browsers.deleteByID(observed)
const seen = await ended
assert.deepEqual(
  seen.map(({ seq }) => seq),
  seen.map((_, index) => index + 1),
)
const stored = await Array.fromAsync(client.browsers.telemetry.events(observed, { limit: 2 }))
assert.deepEqual(stored, seen)
