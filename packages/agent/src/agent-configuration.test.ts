import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { type StartedAgent, startAgent } from './testing/start-agent.ts'

const run = promisify(execFile)

const flagsOf = (agent: StartedAgent) => {
  const [browser] = agent.children('chromium')
  return readFileSync(`/proc/${browser}/cmdline`, 'utf8').split('\0')
}

test('a browser that waits for its profile begins with what it was configured to be meanwhile', async () => {
  await using agent = await startAgent({ headless: false, awaits_profile: true })
  const viewport = { width: 1000, height: 700, refresh_rate: 60 }

  const { status } = await agent.configure({
    viewport,
    kiosk_mode: true,
    start_url: 'data:text/html,<title>first</title>',
  })
  assert.equal(status, 204)
  assert.deepEqual(agent.children('chromium'), [], 'nothing is launched for that')
  const refused = await agent.call('PUT', '/profile?tabs=blank')
  assert.equal(refused.status, 500, 'an empty body is no profile, and the browser goes on waiting')
})

test('a running browser takes another size, mode and page, and keeps its tabs', async () => {
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

test('an agent listens on the address that it is given', async () => {
  await using agent = await startAgent({ listen_address: '127.0.0.1:4711' })
  const script = `
    for (;;) {
      const answer = await fetch('http://127.0.0.1:4711/state').catch(() => undefined)
      if (answer) { console.log(JSON.stringify(await answer.json())); break }
    }`
  const asUser = process.getuid?.() === 0 ? [] : ['--user', '--preserve-credentials']
  const enter = ['--target', String(agent.process.pid), '--net', ...asUser, '--']
  // The network of the agent is there a moment after its process.
  const ask = () =>
    run('nsenter', [...enter, process.execPath, '--input-type=module', '-e', script], { timeout: 5_000 })

  const { stdout } = await ask().catch(ask).catch(ask)

  assert.equal(typeof JSON.parse(stdout).contract_version, 'number')
})

for (const address of ['nowhere', '127.0.0.1', '127.0.0.1:70000', ':80']) {
  test(`an agent does not start with ${address} for an address`, async () => {
    await using agent = await startAgent({ listen_address: address })

    assert.equal(await agent.exited, 1)
    assert.match(agent.log, new RegExp(`${address} is no address to listen on`))
  })
}
