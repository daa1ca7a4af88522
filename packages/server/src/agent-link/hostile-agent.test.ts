import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import type { SessionAccess } from '../access/session-access.ts'
import type { SessionMachines } from '../features/sessions/session-machines.ts'
import { askAgent, callAgent, followAgent, readAgentState } from './agent-client.ts'
import { Relay } from './relay.ts'

const never = new AbortController().signal
const streamHead = 'HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n\r\n'
const ready = JSON.stringify({ event: 'state', contract_version: 1, state: 'ready', idle_since: null })

/** An agent that somebody has taken over: it answers every connection as the test says. Returns its socket. */
async function takenOver(context: TestContext, answer: (socket: Socket) => void): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-agent-'))
  const path = join(folder, 'agent.sock')
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  }).listen(path)
  await once(server, 'listening')
  context.after(async () => {
    for (const socket of open) socket.destroy()
    server.close()
    await rm(folder, { recursive: true })
  })
  return path
}

/** Writes the same for as long as somebody reads. */
function writeForEver(socket: Socket, text: string): void {
  const piece = Buffer.from(text.repeat(Math.ceil(65_536 / text.length)))
  const write = () => {
    while (!socket.destroyed && socket.write(piece));
  }
  socket.on('drain', write)
  write()
}

test('an event line without end is not collected', async (context) => {
  const agent = await takenOver(context, (socket) => {
    socket.write(streamHead)
    writeForEver(socket, 'x')
  })

  await assert.rejects(followAgent(agent, never).next(), /an event of more than/)
})

test('a line that is no event ends the stream', async (context) => {
  for (const line of [
    '{"event":"state"',
    '{"event":"unknown"}',
    '[]',
    '',
    ready.replace('null', '1e400'),
    ready.replace('null', '9e15'),
  ]) {
    const agent = await takenOver(context, (socket) => socket.write(`${streamHead}${line}\n`))

    await assert.rejects(followAgent(agent, never).next(), Error, line)
  }
})

test('events without end come at a pace that the server can bear', async (context) => {
  const agent = await takenOver(context, (socket) => {
    socket.write(streamHead)
    writeForEver(socket, `${ready}\n`)
  })
  const stop = new AbortController()
  context.after(() => stop.abort())

  const startedAt = performance.now()
  let count = 0
  for await (const _event of followAgent(agent, stop.signal)) {
    if (++count === 1_050) break
  }

  // The first thousand at once, the others at a hundred a second.
  assert.ok(performance.now() - startedAt > 400)
})

test('an answer that turns into nonsense is an error of the call, and not the end of the server', async (context) => {
  const agent = await takenOver(context, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n', () =>
      setImmediate(() => socket.end('nonsense\r\n\r\n')),
    )
  })
  const response = await callAgent(agent, { method: 'GET', path: '/state' })

  await assert.rejects(async () => {
    for await (const _chunk of response);
  })
})

test('an answer without end is not collected', async (context) => {
  const agent = await takenOver(context, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    writeForEver(socket, '{"a":')
  })

  await assert.rejects(
    askAgent(agent, { method: 'GET', path: '/json/list', signal: never }),
    /more than 16777216 bytes/,
  )
})

test('an answer that does not come is waited for only so long', { timeout: 10_000 }, async (context) => {
  const silent = await takenOver(context, () => {})
  const halting = await takenOver(context, (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{'))

  const outcomes = await Promise.allSettled([silent, halting].map((agent) => readAgentState(agent)))

  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
})

test('an agent that opens no websocket cannot answer in berth’s name', async (context) => {
  const agent = await takenOver(context, (socket) => {
    socket.write(
      'HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfake',
    )
  })
  const port = await serveRelay(context, agent)

  const answer = await sendUpgrade(port)

  assert.match(answer, /^HTTP\/1\.1 502 \r\nconnection: close\r\n/)
  assert.doesNotMatch(answer, /set-cookie/)
  const [, body] = answer.split(/\r\n\r\n(.*)/s)
  assert.match(
    answer,
    new RegExp(`\r\ncontent-length: ${body?.length}\r\n`),
    'the rest is a body, and no second answer',
  )
})

test('what an agent says of a refusal is passed on', async (context) => {
  const agent = await takenOver(context, (socket) => socket.end('HTTP/1.1 503 Busy\r\ncontent-length: 2\r\n\r\n{}'))
  const port = await serveRelay(context, agent)

  assert.match(await sendUpgrade(port), /^HTTP\/1\.1 503 .*\r\n\r\n\{\}$/s)
})

/** A relay that admits everybody to the one agent. */
async function serveRelay(context: TestContext, agentSocket: string): Promise<number> {
  const server = createHttpServer()
  const relay = new Relay({
    access: { admit: async () => ({ id: 'brwtest' as SessionId }) } as unknown as SessionAccess,
    machines: { getAgentSocket: () => agentSocket } as unknown as SessionMachines,
    logger: createLogger({ name: 'test', level: 'silent', json: true }),
  })
  relay.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => {
    relay.close()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** Everything that comes back until the connection ends. */
async function sendUpgrade(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const key = Buffer.from('0123456789abcdef').toString('base64')
  socket.write(
    `GET /s/brwtest/cdp?jwt=x HTTP/1.1\r\nhost: berth\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: ${key}\r\nsec-websocket-version: 13\r\n\r\n`,
  )
  return text(socket)
}
