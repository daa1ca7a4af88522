import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { linkMode, zip } from '@berth/runtime/testing/zip.ts'
import { type StartedAgent, startAgent } from '../testing/start-agent.ts'

const manifest = { manifest_version: 3, name: 'test', version: '1', background: { service_worker: 'worker.js' } }
const members = [{ name: 'manifest.json', content: JSON.stringify(manifest) }, { name: 'worker.js' }]
const good = zip(...members)
/** Larger than what is kept in memory. */
const data = randomBytes(2 * 1024 ** 2)
const large = zip(...members, { name: 'data', content: data })

function send(agent: StartedAgent, extensions: Readonly<Record<string, Uint8Array>>) {
  const form = new FormData()
  for (const [index, [name, bytes]] of Object.entries(extensions).entries()) {
    form.set(`extensions[${index}][zip_file]`, new Blob([new Uint8Array(bytes)]), 'it.zip')
    form.set(`extensions[${index}][name]`, name)
  }
  return post(agent, new Response(form))
}

async function post(agent: StartedAgent, { headers, body }: Response): Promise<{ status: number; body: string }> {
  const sent = request({
    socketPath: agent.socketPath,
    method: 'POST',
    path: '/extensions',
    headers: { 'content-type': headers.get('content-type') ?? '' },
    agent: false,
  })
  for await (const chunk of body ?? []) sent.write(chunk)
  sent.end()
  const [response] = await once(sent, 'response').catch((cause: Error) => {
    throw new Error(`no response; the agent says:\n${agent.log}`, { cause })
  })
  return { status: response.statusCode, body: await text(response) }
}

/** Chromium starts and ends workers shortly after it loads or removes their extensions. */
async function haveWorkers(agent: StartedAgent, count: number): Promise<void> {
  const client = await agent.connect()
  for (;;) {
    const { targetInfos } = await client.send('Target.getTargets')
    const workers = (targetInfos as { type: string }[]).filter(({ type }) => type === 'service_worker')
    if (workers.length === count) break
    await delay(20)
  }
  client.terminate()
}

test('waits for its extensions before the launch, and is ready when they are loaded', async () => {
  await using agent = await startAgent({ awaits_extensions: true })
  assert.equal(JSON.parse((await agent.call('GET', '/state')).body).state, 'starting')
  assert.deepEqual(agent.children('chromium'), [])

  const [answer] = await Promise.all([send(agent, { one: good, two: large }), agent.becomesReady()])

  assert.deepEqual(answer, { status: 201, body: '' })
  const folder = join(agent.config.home_folder, 'extensions')
  assert.deepEqual(readdirSync(folder), ['one', 'two'])
  assert.ok(readFileSync(join(folder, 'two', 'data')).equals(data))
  await haveWorkers(agent, 2)
})

test('keeps nothing of a refused extension, and follows no links', async () => {
  await using agent = await startAgent()
  await agent.becomesReady()
  const folder = join(agent.config.home_folder, 'extensions')
  const outside = mkdtempSync(join(tmpdir(), 'berth-outside-'))
  mkdirSync(folder)
  chmodSync(folder, 0o777) // The agent may run as another user.
  symlinkSync(outside, join(folder, 'trap'))
  const isOnlyTrap = () => assert.deepEqual(readdirSync(folder), ['trap'])

  for (const [extensions, code] of [
    [{ trap: good }, 'extension_not_loadable'],
    [{ '..': good }, 'invalid_input'],
    [{ one: good, two: zip(...members, { name: 'l', content: '/etc', mode: linkMode }) }, 'archive_refused'],
    [{ one: good, two: zip(...members, { name: '../../x' }) }, 'archive_refused'],
    [{ one: good, two: good.subarray(0, -30) }, 'archive_refused'],
    [{ one: good, two: zip(members[0] as never) }, 'extension_not_loadable'],
  ] as [Record<string, Uint8Array>, string][]) {
    const { status, body } = await send(agent, extensions)
    assert.deepEqual([status, JSON.parse(body).code], [400, code], body)
    isOnlyTrap()
  }
  assert.deepEqual(readdirSync(outside), [])
  assert.equal(existsSync(join(agent.config.home_folder, 'x')), false)
  await haveWorkers(agent, 0)

  assert.equal((await send(agent, { one: good })).status, 201)
  assert.equal((await send(agent, { one: good })).status, 400)
  await haveWorkers(agent, 1)
  rmSync(outside, { recursive: true })
})
