import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises'
import type { AgentEventRecord } from '@berth/contract/agent/agent-endpoints.ts'
import type { ReachableMachine } from '../drivers/driver.ts'
import { connectUnixSocket } from '../host/connect-unix-socket.ts'
import { FakeAgent } from '../testing/fakes/fake-agent.ts'
import { readAgentState } from './agent-client.ts'
import { AgentEventReader, type TakeAgentEvent } from './agent-event-reader.ts'

async function folderFor(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-events-'))
  context.after(() => rm(folder, { recursive: true, force: true }))
  return folder
}

async function fakeAgent(context: TestContext): Promise<{ readonly agent: FakeAgent; readonly socketPath: string }> {
  const socketPath = join(await folderFor(context), 'agent.sock')
  const agent = await FakeAgent.listen(socketPath)
  context.after(() => agent.kill())
  return { agent, socketPath }
}

function machineAt(socketPath: string): ReachableMachine {
  return { connect: () => connectUnixSocket(socketPath) }
}

function read(context: TestContext, socketPath: string, take: TakeAgentEvent): AgentEventReader {
  // At the pace of a real session, a test would wait for minutes.
  const reader = new AgentEventReader(machineAt(socketPath), take, { minimumCost: 0, longestPauseMilliseconds: 100 })
  context.after(() => reader.close())
  return reader
}

async function countUnacknowledged({ events }: FakeAgent): Promise<number> {
  const leaving = new AbortController()
  setImmediate(() => leaving.abort())
  return (await Array.fromAsync(events.follow(undefined, leaving.signal))).length
}

/** Survives the server. Stores each record once with its number, like a table. */
class Storage {
  last = 0
  taken = 0
  lost = 0

  take(record: AgentEventRecord): void {
    if (record.sequence <= this.last) return // An earlier server stored it and was killed before the acknowledgement.
    if ('lost' in record) {
      assert.ok(record.sequence - record.lost <= this.last, `${JSON.stringify(record)} follows ${this.last}`)
      this.lost += record.sequence - this.last
    } else {
      assert.equal(record.sequence, this.last + 1)
      assert.equal(
        'detail' in record.event && record.event.detail,
        String(record.sequence),
        'an event has the number of another',
      )
      this.taken += 1
    }
    this.last = record.sequence
  }

  async reaches(sequence: number): Promise<void> {
    while (this.last < sequence) await delay(5)
  }
}

test('events arrive in order and are removed by the agent', { timeout: 30_000 }, async (context) => {
  const { agent, socketPath } = await fakeAgent(context)
  const storage = new Storage()
  read(context, socketPath, (record) => storage.take(record))

  for (let number = 1; number <= 50; number++) agent.crash('chromium', String(number))
  await storage.reaches(50)

  assert.equal(storage.taken, 50)
  while ((await countUnacknowledged(agent)) > 0) await delay(5)
})

for (const [how, capacityIsEnough] of [
  ['no more than the agent keeps', true],
  ['more than the agent keeps', false],
] as const) {
  test(`with ${how}, each event arrives once or is reported as lost, whatever is cut or killed`, {
    timeout: 60_000,
  }, async (context) => {
    const { agent, socketPath } = await fakeAgent(context)
    const storage = new Storage()
    const failures: unknown[] = []
    let reader = start()
    let appended = 0

    for (let round = 0; round < 60; round++) {
      const burst = Math.floor(Math.random() * (capacityIsEnough ? 20 : 160))
      for (let count = 0; count < burst; count++) agent.crash('chromium', String(++appended))
      const chance = Math.random()
      if (chance < 0.3) agent.cutStreams()
      else if (chance < 0.6) {
        // Like a kill: pending records are neither stored nor acknowledged.
        reader.close()
        reader = start()
      }
      if (capacityIsEnough) await storage.reaches(appended - 60)
      else await delay(Math.random() * 10)
    }
    await storage.reaches(appended)

    assert.deepEqual(failures, [])
    assert.equal(storage.taken + storage.lost, appended)
    if (capacityIsEnough) assert.equal(storage.lost, 0)
    else assert.ok(storage.lost > 0)

    function start(): AgentEventReader {
      const started: AgentEventReader = read(context, socketPath, async (record) => {
        await turn()
        if (started !== reader) throw new Error('the server was killed')
        // A temporary failure of the database.
        if (Math.random() < 0.02) throw new Error('not stored')
        try {
          storage.take(record)
        } catch (failure) {
          failures.push(failure)
          throw failure
        }
      })
      return started
    }
  })
}

test('a reader that stores nothing blocks no other stream of its agent', { timeout: 30_000 }, async (context) => {
  const { agent, socketPath } = await fakeAgent(context)
  const waits = Promise.withResolvers<void>()
  read(context, socketPath, () => {
    waits.resolve()
    return new Promise(() => {})
  })
  agent.crash('chromium', '1')
  await waits.promise

  for (let number = 2; number <= 2_000; number++) agent.crash('chromium', `${number} ${'x'.repeat(5_000)}`)
  const { state } = await readAgentState(machineAt(socketPath))

  assert.equal(state, 'ready')
})

test('events that an agent sent before its end are stored', { timeout: 30_000 }, async (context) => {
  const { agent, socketPath } = await fakeAgent(context)
  const storage = new Storage()
  const first = Promise.withResolvers<void>()
  const reader = read(context, socketPath, async (record) => {
    storage.take(record)
    first.resolve()
    await delay(20)
  })
  agent.crash('chromium', '1')
  await first.promise
  for (let number = 2; number <= 4; number++) agent.crash('chromium', String(number))
  await delay(10)

  agent.endStreams()
  await reader.finish()

  assert.equal(storage.taken, 4)
})

test('unreadable events of an agent are requested again at a limited rate', {
  timeout: 30_000,
}, async (context) => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n'
  const event = { event: 'service_crashed', service: 'chromium', detail: '', at: 0 }
  const out = (sequence: number) => `data: ${JSON.stringify({ sequence, event })}\n\n`
  const answers = [
    `${head}no event\n`,
    `${head}${out(1)}${out(3)}`,
    `${head}${out(2)}${out(1)}`,
    'HTTP/1.1 404 \r\n\r\n',
  ]
  let connections = 0
  const socketPath = join(await folderFor(context), 'agent.sock')
  const open = new Set<Socket>()
  const agent = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {})
    socket.once('data', (request) => {
      if (!request.toString().startsWith('GET')) return socket.end('HTTP/1.1 204 \r\n\r\n')
      return socket.end(answers[connections++ % answers.length] ?? '')
    })
  }).listen(socketPath)
  await once(agent, 'listening')
  context.after(() => {
    for (const socket of open) socket.destroy()
    agent.close()
  })
  const sequences: number[] = []

  read(context, socketPath, ({ sequence }) => void sequences.push(sequence))
  const startedAt = performance.now()
  while (connections < 12) await delay(5)

  assert.ok(performance.now() - startedAt > 500, 'it is asked without a pause')
  assert.deepEqual(sequences, [1, 2], 'an order that no agent would have')
})
