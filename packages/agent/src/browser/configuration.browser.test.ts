import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type StartedAgent, startAgent } from '../testing/start-agent.ts'
import { packProfile } from './profile/profile-archive.ts'

const run = promisify(execFile)

const flagsOf = (agent: StartedAgent) => {
  const [browser] = agent.children('chromium')
  return readFileSync(`/proc/${browser}/cmdline`, 'utf8').split('\0')
}

async function sendProfile(agent: StartedAgent): Promise<number> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'berth-agent-configuration-'))
  await mkdir(join(folder.path, 'Default'))
  await writeFile(join(folder.path, 'Default', 'Bookmarks'), '{}')
  const sent = request({ socketPath: agent.socketPath, method: 'PUT', path: '/profile?tabs=blank', agent: false })
  sent.end(await buffer(packProfile(folder.path)))
  const [response] = await once(sent, 'response')
  response.resume()
  return response.statusCode
}

async function stateOf(agent: StartedAgent): Promise<string> {
  return JSON.parse((await agent.call('GET', '/state')).body).state
}

test('a browser that waits for its profile starts with the latest configuration', async () => {
  await using agent = await startAgent({ headless: false, awaits_profile: true })
  const viewport = { width: 1000, height: 700, refresh_rate: 60 }
  const startUrl = 'data:text/html,<title>first</title>'

  const { status } = await agent.configure({ viewport, kiosk_mode: true, start_url: startUrl })
  assert.deepEqual([status, await stateOf(agent)], [204, 'starting'], 'that is no launch')
  assert.equal(await sendProfile(agent), 204)
  await agent.becomesReady()

  assert.ok(flagsOf(agent).includes('--kiosk'))
  const cdp = await agent.connect()
  const page = await cdp.attach()
  // The start page is opened once the first page is available.
  const deadline = performance.now() + 60_000
  while ((await cdp.evaluate('location.href', page)) !== startUrl) assert.ok(performance.now() < deadline, startUrl)
  assert.equal(await cdp.evaluate('innerWidth + "x" + innerHeight', page), '1000x700')
})

test('a browser that waits for its launch starts in the configured mode, and without a profile', async () => {
  await using agent = await startAgent({ awaits_profile: true })
  const { status } = await agent.configure({ stealth: true, launch: false })
  assert.deepEqual([status, await stateOf(agent)], [204, 'starting'], 'that is no launch')

  await agent.configure({ launch: true })
  await agent.becomesReady()

  assert.ok(flagsOf(agent).includes('--ozone-platform=headless'))
})

for (const awaits_profile of [false, true]) {
  test(`a rehearsal leaves no trace that a session could see, ${awaits_profile ? 'before' : 'after'} the launch`, async () => {
    await using agent = await startAgent({ awaits_profile })
    if (!awaits_profile) await agent.becomesReady()
    const home = () =>
      readdirSync(agent.config.home_folder, { recursive: true }).filter((path) => /extension/.test(`${path}`))
    const before = home()

    const { status, body } = await agent.configure({ rehearse: true })

    assert.equal(status, 204, body)
    assert.deepEqual(home(), before)
    assert.deepEqual(
      readdirSync(agent.config.run_folder).filter((name) => /extensions|rehearsal/.test(name)),
      [],
    )
  })
}

test('a client that connects while a browser gets its first size waits for the size and the page', async () => {
  await using agent = await startAgent()
  await agent.becomesReady()
  const before = agent.children('chromium')
  const startUrl = 'data:text/html,<script>document.title = innerWidth + "x" + innerHeight</script>'

  const viewport = { width: 1203, height: 807, refresh_rate: 60 }
  const { status } = await agent.configure({ viewport, start_url: startUrl, clients_wait: true })
  assert.equal(status, 204)
  const cdp = await agent.connect()
  const page = await cdp.attach()

  assert.equal(await cdp.evaluate('innerWidth + "x" + innerHeight', page), '1203x807')
  const titled = `new Promise((done) => {
    const look = () => document.title === '' ? setTimeout(look, 10) : done(document.title)
    look()
  })`
  assert.equal(await cdp.evaluate(titled, page), '1203x807')
  assert.deepEqual(agent.children('chromium'), before, 'the same browser')
})

test('an unused running browser changes its size, mode and page', async () => {
  await using agent = await startAgent({ headless: false })
  await agent.becomesReady()
  const before = agent.children('chromium')
  assert.ok(!flagsOf(agent).includes('--kiosk'))

  const viewport = { width: 1000, height: 700, refresh_rate: 60 }
  const { status, body } = await agent.configure({
    viewport,
    kiosk_mode: true,
    start_url: 'data:text/html,<p>given</p>',
  })

  assert.equal(status, 204, `${body}\n${agent.log}`)
  assert.ok(flagsOf(agent).includes('--kiosk'))
  assert.notDeepEqual(agent.children('chromium'), before)
  const cdp = await agent.connect()
  const page = await cdp.attach()
  assert.equal(await cdp.evaluate('innerWidth + "x" + innerHeight', page), '1000x700', 'in kiosk mode the page is all')
  assert.equal(await cdp.evaluate('location.href', page), 'data:text/html,<p>given</p>')

  const kept = agent.children('chromium')
  assert.equal((await agent.configure({ viewport, kiosk_mode: true })).status, 204)
  assert.deepEqual(agent.children('chromium'), kept, 'what it has already takes no launch')
})

test('an agent listens on the given address', async () => {
  await using agent = await startAgent({ listen_address: '127.0.0.1:4711' })
  const script = `
    for (;;) {
      const answer = await fetch('http://127.0.0.1:4711/state').catch(() => undefined)
      if (answer) { console.log(JSON.stringify(await answer.json())); break }
    }`
  const asUser = process.getuid?.() === 0 ? [] : ['--user', '--preserve-credentials']
  const enter = ['--target', String(agent.process.pid), '--net', ...asUser, '--']
  const networkOf = (pid: number | string | undefined) => readlinkSync(`/proc/${pid}/ns/net`)
  // The agent gets its network shortly after its process starts.
  while (networkOf(agent.process.pid) === networkOf('self')) await delay(10)
  const asked = [...enter, process.execPath, '--input-type=module', '-e', script]

  const { stdout } = await run('nsenter', asked, { timeout: 60_000 })

  assert.equal(typeof JSON.parse(stdout).contract_version, 'number')
})

for (const address of ['nowhere', '127.0.0.1', '127.0.0.1:70000', ':80']) {
  test(`an agent rejects the address ${address}`, async () => {
    await using agent = await startAgent({ listen_address: address })

    assert.equal(await agent.exited, 1)
    assert.match(agent.log, new RegExp(`${address} is not an address to listen on`))
  })
}
