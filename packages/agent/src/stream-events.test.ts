import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mock, test } from 'node:test'
import type { AgentEvent } from '@berth/contract/agent/agent-endpoints.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { AgentEvents } from './agent-events.ts'
import { streamEvents } from './stream-events.ts'

test('a busy session costs its watcher a few events, and the last one is true', () => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const events = new AgentEvents({ now: () => new Date() })
  const told: AgentEvent[] = []
  events.becomeReady()
  events.watch((event) => told.push(event))
  told.length = 0

  // Ten seconds of 200 operations a second.
  for (let count = 0; count < 2_000; count++) {
    const end = events.activity.begin()
    mock.timers.tick(2)
    end()
    mock.timers.tick(3)
  }
  mock.timers.tick(1_000)

  assert.ok(told.length > 10 && told.length < 60, String(told.length))
  assert.deepEqual(told.at(-1), { event: 'state', ...events.state })
  assert.equal(events.state.idle_since, Date.now() - 1_003)
  mock.timers.reset()
})

test('what matters is told at once: that it is ready, and that it failed', () => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const events = new AgentEvents({ now: () => new Date() })
  const told: string[] = []
  events.watch((event) => told.push(event.event === 'state' ? event.state : event.event))
  events.activity.begin()

  events.becomeReady()
  events.activity.begin()()
  events.fail('a reason')

  assert.deepEqual(told.slice(-2), ['ready', 'failed'])
  mock.timers.reset()
})

test('a reader that is slow gets every crash and the last state, and costs no more memory', async () => {
  const events = new AgentEvents(systemClock)
  const server = createServer((_request, response) => streamEvents(events, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const request = get({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, agent: false })
  const [response] = await once(request, 'response')
  const detail = 'x'.repeat(20_000)

  for (let count = 0; count < 500; count++) {
    events.reportCrash('chromium', `${count} ${detail}`)
    events.becomeReady()
  }
  events.fail('the end')
  const told: AgentEvent[] = []
  let unfinished = ''
  for await (const chunk of response.setEncoding('utf8')) {
    const lines = `${unfinished}${chunk}`.split('\n')
    unfinished = lines.pop() ?? ''
    told.push(...lines.map((line) => JSON.parse(line) as AgentEvent))
    if (told.some((event) => event.event === 'state' && event.state === 'failed')) break
  }
  server.close()

  const crashes = told.filter(({ event }) => event === 'service_crashed')
  assert.equal(crashes.length, 500)
  assert.ok(told.length < 900, `${told.length} events, though states follow each other`)
})
