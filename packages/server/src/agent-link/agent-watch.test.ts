import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { agentContractVersion } from '@berth/contract/agent/agent-protocol.ts'
import type { MachineId, SessionId } from '@berth/contract/common/ids.ts'
import { connectUnixSocket } from '../host/connect-unix-socket.ts'
import { TestServer } from '../testing/server-test.ts'
import { AgentWatch } from './agent-watch.ts'

const server = await TestServer.open()
after(() => server.close())

const streamHead = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n'
const stateLine = (state: object) =>
  `data: ${JSON.stringify({ contract_version: agentContractVersion, state: 'ready', idle_since: null, ...state })}\n\n`

/** Watches an agent that handles connections as the test defines. Resolves with the reason of the end. */
async function watch(context: TestContext, answer: (socket: Socket) => void, patienceMilliseconds = 500) {
  const folder = await mkdtemp(join(tmpdir(), 'berth-watch-'))
  const agentSocket = join(folder, 'agent.sock')
  const open = new Set<Socket>()
  let connections = 0
  const agent = createServer((socket) => {
    connections += 1
    open.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  }).listen(agentSocket)
  await once(agent, 'listening')
  const ended = Promise.withResolvers<void>()
  const gone = Promise.withResolvers<string>()
  const machine = {
    id: 'mchtest' as MachineId,
    egressSocket: { path: join(folder, 'egress.sock'), mode: 0o600 },
    connect: () => connectUnixSocket(agentSocket),
    ended: ended.promise,
    endReason: undefined as string | undefined,
  }
  const handlers = { onState: () => {}, onGone: gone.resolve }
  const agentWatch = new AgentWatch(machine, handlers, { patienceMilliseconds })
  context.after(async () => {
    agentWatch.close()
    for (const socket of open) socket.destroy()
    agent.close()
    await rm(folder, { recursive: true })
  })
  const endMachine = (reason?: string) => {
    machine.endReason = reason
    ended.resolve()
  }
  return { gone: gone.promise, endMachine, agentWatch, connections: () => connections }
}

const endings: readonly (readonly [what: string, answer: (socket: Socket) => void, reason: RegExp])[] = [
  ['never answers', () => {}, /cannot be heard/],
  ['ends each stream before its first state', (socket) => socket.end(streamHead), /its stream of states ended/],
  ['sends what is no event', (socket) => socket.write(`${streamHead}no event\n`), /cannot be heard/],
]
for (const [what, answer, reason] of endings) {
  test(`an agent that ${what} is abandoned after a while`, { timeout: 20_000 }, async (context) => {
    const startedAt = performance.now()
    const { gone } = await watch(context, answer)

    assert.match(await gone, reason)
    assert.ok(performance.now() - startedAt >= 499)
  })
}

test('an agent that reports its own end counts as gone immediately', { timeout: 20_000 }, async (context) => {
  const failing = await watch(
    context,
    (socket) => socket.write(`${streamHead}${stateLine({ state: 'failed', failure: 'no display' })}`),
    60_000,
  )
  const foreign = await watch(
    context,
    (socket) => socket.write(`${streamHead}${stateLine({ contract_version: 99 })}`),
    60_000,
  )

  assert.match(await failing.gone, /no display/)
  assert.match(await foreign.gone, /version 99/)
})

for (const [reason, expected] of [
  [undefined, 'its machine ended'],
  ['Evicted: low on memory', 'its machine ended: Evicted: low on memory'],
] as const) {
  test(`the end of the machine is noticed in any state of the stream: ${expected}`, {
    timeout: 20_000,
  }, async (context) => {
    const { agentWatch, endMachine, gone } = await watch(
      context,
      (socket) => socket.write(`${streamHead}${stateLine({})}`),
      60_000,
    )
    await agentWatch.ready

    endMachine(reason)

    assert.equal(await gone, expected)
  })
}

test('a stream that is cut off within a line is reopened', { timeout: 20_000 }, async (context) => {
  let count = 0
  const enough = Promise.withResolvers<void>()
  const answer = (socket: Socket) => {
    if (++count === 4) enough.resolve()
    socket.end(`${streamHead}${stateLine({})}data: {"sta`)
  }
  const { agentWatch } = await watch(context, answer, 60_000)

  await enough.promise

  assert.equal(agentWatch.isOver, false)
})

test('after an agent ends its stream immediately, the stream is reopened after a pause', {
  timeout: 20_000,
}, async (context) => {
  const { gone, connections } = await watch(context, (socket) => socket.destroy(), 2_000)

  await gone

  assert.ok(connections() < 10, `${connections()} connections in 2 s`)
})

test('a session survives 200 operations a second and streams that are cut at any moment', {
  timeout: 60_000,
}, async () => {
  const project = await server.project()
  const { session_id } = await project.session()
  const agent = server.host.agentOf(session_id as SessionId)
  const rounds = 40

  for (let round = 0; round < rounds; round++) {
    // Each operation starts and ends an activity: 10 of them in 50 ms.
    for (let operation = 0; operation < 10; operation++) {
      agent.setState({ idle_since: null })
      agent.setState({ idle_since: Date.now() })
      if (Math.random() < 0.05) agent.cutStreams()
    }
    await delay(50)
  }
  agent.cutStreams()
  const idleSince = server.clock.now()
  agent.setState({ idle_since: idleSince.getTime() })

  await becomesIdle(session_id as SessionId, idleSince)
  assert.equal((await project.call('GET', `/browsers/${session_id}`)).status, 200)
})

test('a session whose programs crash endlessly continues, and its activity is reported', {
  timeout: 60_000,
}, async () => {
  const project = await server.project()
  const { session_id } = await project.session()
  const agent = server.host.agentOf(session_id as SessionId)

  // More than the server processes in minutes, and more than the agent stores.
  for (let crash = 0; crash < 5_000; crash++) agent.crash('chromium', 'x'.repeat(5_000))
  const idleSince = new Date(server.clock.now().getTime() + 1_000)
  agent.setState({ idle_since: idleSince.getTime() })

  await becomesIdle(session_id as SessionId, idleSince)
  assert.equal((await project.call('GET', `/browsers/${session_id}`)).status, 200)
  assert.equal((await project.call('DELETE', `/browsers/${session_id}`)).status, 204)
})

async function becomesIdle(id: SessionId, since: Date): Promise<void> {
  const noted = async () => {
    const { idle_since } = await server.database
      .selectFrom('sessions')
      .select('idle_since')
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    return idle_since?.getTime()
  }
  while ((await noted()) !== since.getTime()) await delay(20)
}
