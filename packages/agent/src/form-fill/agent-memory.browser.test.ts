import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { telemetryCategories } from '@berth/contract/browsers/telemetry-config.ts'
import { sealValues } from '@berth/runtime/sealing/seal-values.ts'
import { type StartedAgent, startAgent } from '../testing/start-agent.ts'

const chunkBytes = 16 * 1024 * 1024

/** Which of the texts are in the memory of a process, in any encoding that Node uses for strings or bytes. */
async function findInMemory(pid: number, texts: readonly string[]): Promise<readonly string[]> {
  const maps = (await readFile(`/proc/${pid}/maps`, 'utf8')).split('\n')
  await using memory = await open(`/proc/${pid}/mem`)
  const left = new Set(texts)
  const overlap = 2 * Math.max(...texts.map((text) => text.length))
  for (const line of maps) {
    const [, from = '', to = ''] = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line) ?? []
    const end = Number(`0x${to}`)
    for (let at = Number(`0x${from}`); from !== '' && at < end; at += chunkBytes) {
      const length = Math.min(chunkBytes + overlap, end - at)
      const { buffer, bytesRead } = await memory.read(Buffer.alloc(length), 0, length, at)
      const bytes = buffer.subarray(0, bytesRead)
      for (const text of left) {
        const encodings = (['utf8', 'utf16le'] as const).map((encoding) => Buffer.from(text, encoding))
        const base64 = Buffer.from(Buffer.from(text).toString('base64').slice(0, -4))
        if ([...encodings, base64].some((encoded) => bytes.includes(encoded))) left.delete(text)
      }
    }
  }
  return texts.filter((text) => !left.has(text))
}

async function ask<Answer>(agent: StartedAgent, method: string, path: string, body?: object): Promise<Answer> {
  const answer = await agent.call(method, path, body)
  assert.equal(answer.status, 200, answer.body)
  return JSON.parse(answer.body)
}

const seal = async (agent: StartedAgent, value: unknown) =>
  sealValues(await ask(agent, 'POST', '/sealing-keys'), [value])

const html = '<!doctype html><title>Shop</title><input id="password" type="password">'

test("the agent's memory contains no values after they are in the page", async () => {
  await using agent = await startAgent()
  await agent.becomesReady()
  await agent.configure({ telemetry: { categories: [...telemetryCategories], excluded_methods: [] } })
  const client = await agent.connect()
  const page = await client.attach()
  const body64 = Buffer.from(html).toString('base64')
  client.onEvent(({ method, params }) => {
    if (method !== 'Fetch.requestPaused') return
    void client.send('Fetch.fulfillRequest', { requestId: params.requestId, responseCode: 200, body: body64 }, page)
  })
  await client.send('Fetch.enable', {}, page)
  await client.send('Page.navigate', { url: 'https://shop.test/' }, page)
  const value = `planted-"ö"-${randomUUID()}`
  // A control: the agent has kept the fill's id as a string, so a search that does not find it is broken.
  const selectors = ['#password']

  const found = await ask<{ fill_id: string }>(agent, 'POST', '/form-fields', { selectors, timeout_ms: 20_000 })
  const body = { fill_id: found.fill_id, sealed_values: await seal(agent, value), timeout_ms: 20_000 }
  const outcome = await ask<{ status: string }>(agent, 'POST', '/form-fields/values', body)
  const inMemory = await findInMemory(Number(agent.process.pid), [found.fill_id, value])

  assert.equal(outcome.status, 'completed')
  assert.equal(await client.evaluate('password.value', page), value)
  assert.deepEqual(inMemory, [found.fill_id])
})

test('a key decrypts one set of values, and no other key does', async () => {
  await using agent = await startAgent()
  await agent.becomesReady()
  const [first, second] = [await seal(agent, 'one'), await seal(agent, 'two')]
  const fill = (sealed_values: object) =>
    agent.call('POST', '/form-fields/values', { fill_id: 'x', sealed_values, timeout_ms: 1 })

  const exchanged = await fill({ ...first, key_id: second.key_id })
  const used = await fill(second)
  const own = await fill(first)

  assert.deepEqual([exchanged.status, used.status, own.status], [500, 500, 200])
  assert.match(own.body, /target_changed/)
})
