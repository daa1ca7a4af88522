import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type StartedAgent, startAgent } from '../testing/start-agent.ts'

let agent: StartedAgent

before(async () => {
  agent = await startAgent()
  await agent.becomesReady()
})

after(() => agent[Symbol.asyncDispose]())

async function command(method: string, path: string, body?: object) {
  const answer = await agent.call(method, `/webdriver${path}`, body)
  return { status: answer.status, value: JSON.parse(answer.body).value }
}

test('chromedriver starts with the first session, and serves at most 16', async () => {
  assert.deepEqual(agent.children('chromedriver'), [])

  const made = await Promise.all(Array.from({ length: 17 }, () => command('POST', '/session', { capabilities: {} })))
  const status = await command('GET', '/status')
  const refused = made.filter((answer) => answer.status !== 200)
  const created = made.filter((answer) => answer.status === 200)
  await command('DELETE', `/session/${created[0]?.value.sessionId}`)
  const next = await command('POST', '/session', { capabilities: {} })

  assert.equal(agent.children('chromedriver').length, 1)
  assert.equal(status.value.ready, false)
  assert.deepEqual(
    refused.map(({ value }) => value.error),
    ['session not created'],
  )
  assert.match(refused[0]?.value.message, /16 WebDriver sessions/)
  assert.equal(next.status, 200)
  assert.equal(next.value.capabilities['goog:chromeOptions'].debuggerAddress, undefined)
  for (const { value } of [...created, next]) await command('DELETE', `/session/${value.sessionId}`)
})

test('a command counts as activity, and an idle session does not', async () => {
  const { value } = await command('POST', '/session', { capabilities: {} })

  await agent.statesUntil(({ idle_since }) => idle_since !== null)
  // Longer than a busy machine takes to open a stream of states.
  const script = { script: 'setTimeout(arguments[0], 3_000)', args: [] }
  const running = command('POST', `/session/${value.sessionId}/execute/async`, script)
  await agent.statesUntil(({ idle_since }) => idle_since === null)
  await running
  await agent.statesUntil(({ idle_since }) => idle_since !== null)

  await command('DELETE', `/session/${value.sessionId}`)
})
