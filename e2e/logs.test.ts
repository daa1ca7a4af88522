import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Berth } from './testing/berth.ts'

const berth = await Berth.borrow()
const client = await berth.client()
after(() => berth[Symbol.asyncDispose]())
const { session_id: id } = await client.browsers.create({ headless: false, timeout_seconds: 300 })

/** Reads a stream that ends by itself, with the official client. */
async function linesOf(query: Parameters<typeof client.browsers.logs.stream>[1]): Promise<readonly string[]> {
  const lines: string[] = []
  for await (const { message } of await client.browsers.logs.stream(id, query)) lines.push(message)
  return lines
}

test('logs of files and programs of a session include earlier lines', async () => {
  await client.browsers.fs.writeFile(id, 'one\n\ntwo\n', { path: '/tmp/a.log' })

  const file = await linesOf({ source: 'path', path: '/tmp/a.log', follow: false })
  const chromium = await linesOf({ source: 'supervisor', supervisor_process: 'chromium', follow: false })
  const display = await linesOf({ source: 'supervisor', supervisor_process: 'display', follow: false })

  assert.deepEqual(file, ['one', 'two'])
  assert.ok(
    chromium.some((line) => line.startsWith('DevTools listening on ')),
    chromium.join('\n'),
  )
  assert.ok(
    display.some((line) => line.includes('TigerVNC')),
    display.join('\n'),
  )
})
