import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { zstdCompressSync } from 'node:zlib'
import type { CdpClient } from '../../testing/cdp-client.ts'
import { type StartedAgent, startAgent } from '../../testing/start-agent.ts'

const folder = mkdtempSync(join(tmpdir(), 'berth-agent-profile-'))
after(() => rmSync(folder, { recursive: true }))
chmodSync(folder, 0o755)

/** Exits if the profile in use contains a certain file. */
const pickyChromium = join(folder, 'chromium')
writeFileSync(
  pickyChromium,
  `#!/bin/sh
for arg; do case "$arg" in --user-data-dir=*) [ -e "\${arg#*=}/Default/poison" ] && exit 7;; esac; done
exec /usr/lib/chromium/chromium "$@"
`,
)
chmodSync(pickyChromium, 0o755)

async function load(agent: StartedAgent, archive: Buffer, tabs = 'restore'): Promise<number> {
  const sent = request({ socketPath: agent.socketPath, method: 'PUT', path: `/profile?tabs=${tabs}`, agent: false })
  sent.end(archive)
  const [response] = await once(sent, 'response')
  await text(response)
  return response.statusCode
}

async function giveOut(agent: StartedAgent): Promise<Buffer> {
  const sent = request({ socketPath: agent.socketPath, method: 'POST', path: '/profile', agent: false })
  sent.end()
  const [response] = await once(sent, 'response')
  return buffer(response)
}

const pagesOf = async (client: CdpClient): Promise<string[]> => {
  const { targetInfos } = await client.send('Target.getTargets')
  return (targetInfos as { type: string; url: string }[]).filter(({ type }) => type === 'page').map(({ url }) => url)
}

/** Waits until exactly these pages are open. */
async function becomes(client: CdpClient, urls: readonly string[]): Promise<void> {
  const deadline = performance.now() + 60_000
  for (;;) {
    const seen = (await pagesOf(client)).toSorted()
    if (String(seen) === String(urls)) return
    if (performance.now() > deadline) assert.deepEqual(seen, urls)
  }
}

async function cookieOf(client: CdpClient): Promise<string | undefined> {
  const { cookies } = await client.send('Storage.getCookies')
  return (cookies as { name: string; value: string }[]).find(({ name }) => name === 'who')?.value
}

async function setCookie(client: CdpClient, value: string): Promise<void> {
  await client.send('Storage.setCookies', { cookies: [{ name: 'who', value, url: 'http://127.0.0.1/' }] })
}

const configFolder = (agent: StartedAgent) => join(agent.folder, 'home', '.config')

/** The process of a Chromium that has been launched ahead of its profile. */
async function launchedAhead(agent: StartedAgent): Promise<number> {
  for (;;) {
    const [pid] = agent.children('chromium')
    // Made a moment before Chromium reads the preferences.
    if (
      pid !== undefined &&
      lstatSync(join(configFolder(agent), 'chromium', 'SingletonLock'), { throwIfNoEntry: false })
    )
      return pid
    await delay(20)
  }
}

let saved: Promise<Buffer> | undefined

/** A state with a cookie and a tab. */
function savedState(): Promise<Buffer> {
  saved ??= saveState()
  return saved
}

async function saveState(): Promise<Buffer> {
  await using agent = await startAgent()
  await agent.becomesReady()
  const client = await agent.connect()
  await setCookie(client, 'first')
  const page = await client.newPage()
  await client.send('Page.navigate', { url: 'data:text/html,tab' }, page)
  await becomes(client, ['about:blank', 'data:text/html,tab'])
  const state = await giveOut(agent)
  assert.ok(state.length > 1000)
  assert.ok((await giveOut(agent)).length > 1000, 'whoever asks again gets it again')
  return state
}

test('an agent that awaits a profile launches ahead of it, and goes on with it', async () => {
  const state = await savedState()
  for (const tabs of ['restore', 'blank']) {
    await using agent = await startAgent({ awaits_profile: true })
    const ahead = await launchedAhead(agent)
    assert.equal(JSON.parse((await agent.call('GET', '/state')).body).state, 'starting')

    assert.equal(await load(agent, state, tabs), 204)
    await agent.becomesReady()

    const client = await agent.connect()
    assert.equal(await cookieOf(client), 'first')
    const expected = tabs === 'blank' ? ['about:blank'] : ['about:blank', 'data:text/html,tab']
    // The tabs exist from the start, but load later.
    assert.equal((await pagesOf(client)).length, expected.length)
    await becomes(client, expected)
    const isTheSame = agent.children('chromium')[0] === ahead
    assert.equal(isTheSame, tabs === 'restore', 'an empty page takes another launch')
    const states = readdirSync(configFolder(agent)).filter((name) => name.startsWith('chromium'))
    assert.deepEqual(states, ['chromium'], 'nothing else is left')
  }
})

const otherSize = { width: 800, height: 600, refresh_rate: 60 }
const changes = {
  'other policies': (agent: StartedAgent) => agent.configure({ has_new_policies: true }),
  'another size': (agent: StartedAgent) => agent.configure({ viewport: otherSize }),
  'what it has died of': async (agent: StartedAgent, ahead: number) => {
    process.kill(ahead, 'SIGKILL')
    while (agent.children('chromium').includes(ahead)) await delay(20)
  },
}
for (const [what, change] of Object.entries(changes)) {
  test(`a browser that waits for its profile does not go on with ${what}: another one is launched`, async () => {
    const state = await savedState()
    await using agent = await startAgent({ awaits_profile: true })
    const ahead = await launchedAhead(agent)

    await change(agent, ahead)
    assert.equal(await load(agent, state), 204)
    await agent.becomesReady()

    const client = await agent.connect()
    assert.equal(await cookieOf(client), 'first')
    assert.notEqual(agent.children('chromium')[0], ahead)
    await becomes(client, ['about:blank', 'data:text/html,tab'])
  })
}

test('a browser that waits for its profile ends with its agent', async () => {
  await using agent = await startAgent({ awaits_profile: true })
  const ahead = await launchedAhead(agent)

  agent.process.kill('SIGTERM')
  await agent.exited

  assert.ok(!existsSync(`/proc/${ahead}/root`))
})

test('an unusable profile does not change a running browser', async () => {
  await using agent = await startAgent({ chromium_path: pickyChromium })
  await agent.becomesReady()
  const client = await agent.connect()
  await setCookie(client, 'mine')
  const page = await client.newPage()
  await client.send('Page.navigate', { url: 'data:text/html,mine' }, page)
  await becomes(client, ['about:blank', 'data:text/html,mine'])
  mkdirSync(join(folder, 'Default'))
  writeFileSync(join(folder, 'Default', 'poison'), '')
  const poison = zstdCompressSync(execFileSync('tar', ['-c', '-C', folder, 'Default']))
  const crashes: unknown[] = []
  void agent
    .eventsUntil((event) => {
      crashes.push(event)
      return false
    })
    .catch(() => {})

  // Larger than a connection buffers: the response must not be sent, and lost, while the archive is still being sent.
  for (const archive of [Buffer.from('no archive'), Buffer.alloc(5_000_000, 'no archive')]) {
    assert.equal(await load(agent, archive), 500)
  }
  assert.equal(await cookieOf(client), 'mine', 'not even the client was dropped')
  assert.equal(await load(agent, poison), 500)
  await client.closed
  const again = await agent.connect()

  assert.equal(await cookieOf(again), 'mine')
  await becomes(again, ['about:blank', 'data:text/html,mine'])
  assert.deepEqual(crashes, [], 'that was no crash')
})

test('a profile that was loaded into a running browser can be reverted', async () => {
  await using agent = await startAgent()
  await agent.becomesReady()
  const client = await agent.connect()
  await setCookie(client, 'mine')
  mkdirSync(join(folder, 'other', 'Default'), { recursive: true })
  const other = zstdCompressSync(execFileSync('tar', ['-c', '-C', join(folder, 'other'), 'Default']))

  assert.equal((await agent.call('DELETE', '/profile')).status, 204)
  assert.equal(await cookieOf(client), 'mine', 'nothing was to be taken back')
  assert.equal(await load(agent, other), 204)
  await client.closed
  assert.equal(await cookieOf(await agent.connect()), undefined)
  assert.equal((await agent.call('DELETE', '/profile')).status, 204)

  assert.equal(await cookieOf(await agent.connect()), 'mine')
})
