import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import { followAgentState } from '@berth/contract/agent/agent-endpoints.ts'
import { agentContractVersion } from '@berth/contract/agent/agent-protocol.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import type { SessionAccess } from '../access/session-access.ts'
import type { ReachableMachine } from '../drivers/driver.ts'
import type { SessionMachines } from '../features/sessions/machines/session-machines.ts'
import { connectUnixSocket } from '../host/connect-unix-socket.ts'
import { callAgent, readAgentState, requestAgent } from './agent-client.ts'
import { EventRateLimiter } from './event-rate-limiter.ts'
import { followAgent } from './follow-agent.ts'
import { Relay } from './relay/relay.ts'
import { SessionConnections } from './relay/session-connections.ts'

const never = new AbortController().signal
const streamHead = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n'
const ready = `data: ${JSON.stringify({ contract_version: agentContractVersion, state: 'ready', idle_since: null })}`

function follow(agent: ReachableMachine, signal: AbortSignal = never) {
  return followAgent(agent, followAgentState, { signal, pace: new EventRateLimiter() })
}

/** A hijacked agent: it handles every connection as the test defines. Returns its machine. */
async function takenOver(context: TestContext, answer: (socket: Socket) => void): Promise<ReachableMachine> {
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
  return { connect: () => connectUnixSocket(path) }
}

/** Writes the same text until the reader disconnects. */
function writeForEver(socket: Socket, text: string): void {
  const piece = Buffer.from(text.repeat(Math.ceil(65_536 / text.length)))
  const write = () => {
    while (!socket.destroyed && socket.write(piece));
  }
  socket.on('drain', write)
  write()
}

test('an endless line of an event is not buffered', async (context) => {
  const agent = await takenOver(context, (socket) => {
    socket.write(streamHead)
    writeForEver(socket, 'x')
  })

  await assert.rejects(follow(agent).next(), /an event of more than/)
})

test('a malformed event ends the stream', async (context) => {
  for (const line of [
    'data: {"state":"ready"',
    'data: {"state":"unknown"}',
    'data: []',
    'data: ',
    'event: state',
    '{}',
    ready.replace('null', '1e400'),
    ready.replace('null', '9e15'),
  ]) {
    const agent = await takenOver(context, (socket) => socket.write(`${streamHead}${line}\n`))

    await assert.rejects(follow(agent).next(), Error, line)
  }
})

for (const [what, piece] of [
  ['events', `${ready}\n\n`],
  ['comments', ':\n'],
  ['empty lines', '\n'],
] as const) {
  test(`endless ${what} are read at a limited rate`, async (context) => {
    const last = ready.replace('null', '1')
    const agent = await takenOver(context, (socket) => socket.write(`${streamHead}${piece.repeat(1_050)}${last}\n\n`))

    const startedAt = performance.now()
    for await (const { idle_since } of follow(agent)) {
      if (idle_since !== null) break
    }

    // The first thousand pass immediately, the others at a hundred per second.
    assert.ok(performance.now() - startedAt > 400)
  })
}

test('a response that becomes malformed is an error of the call, and does not end the server', async (context) => {
  const agent = await takenOver(context, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n', () =>
      setImmediate(() => socket.end('no chunk\r\n\r\n')),
    )
  })
  const response = await callAgent(agent, { method: 'GET', path: '/state' })

  await assert.rejects(async () => {
    for await (const _chunk of response);
  })
})

test('an endless response is not buffered', async (context) => {
  const agent = await takenOver(context, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    writeForEver(socket, '{"a":')
  })

  await assert.rejects(
    requestAgent(agent, { method: 'GET', path: '/json/list', signal: never }),
    /more than 1048576 bytes/,
  )
})

test('a missing response has a time limit', { timeout: 10_000 }, async (context) => {
  const silent = await takenOver(context, () => {})
  const halting = await takenOver(context, (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{'))

  const outcomes = await Promise.allSettled([silent, halting].map((agent) => readAgentState(agent)))

  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
})

const acceptsNothing = 'HTTP/1.1 101 X\r\nupgrade: websocket\r\nconnection: Upgrade\r\n'
const ownAnswer =
  /^HTTP\/1\.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: \S+\r\n\r\n$/
const ownRefusal =
  /^HTTP\/1\.1 502 \r\nconnection: close\r\ncontent-type: application\/json[^\r]*\r\nx-content-type-options: nosniff\r\ncontent-length: \d+\r\n\r\n\{"code":"session_unreachable"[^\r]*$/

/** What an agent writes in response to a handshake before it disconnects, and everything that its client receives. */
const handshakeAnswers: readonly (readonly [what: string, written: string, got: RegExp])[] = [
  ['a cookie', `${acceptsNothing}set-cookie: a=b\r\n\r\n`, ownAnswer],
  ['what browsers act on', `${acceptsNothing}clear-site-data: "*"\r\nalt-svc: h3=":1"\r\nx: y\r\n\r\n`, ownAnswer],
  ['a protocol that nobody has offered', `${acceptsNothing}sec-websocket-protocol: p\r\n\r\n`, ownAnswer],
  ['an extension', `${acceptsNothing}sec-websocket-extensions: permessage-deflate\r\n\r\n`, ownAnswer],
  ['an acceptance of another key', `${acceptsNothing}sec-websocket-accept: x\r\n\r\n`, ownAnswer],
  ['success without an upgrade', 'HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n', ownRefusal],
  [
    'two answers',
    'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfake',
    ownRefusal,
  ],
  ['a redirect', 'HTTP/1.1 302 Found\r\nlocation: https://x.test\r\n\r\n', ownRefusal],
  ['the status 000', 'HTTP/1.1 000 X\r\n\r\n', ownRefusal],
  ['the status 999', 'HTTP/1.1 999 X\r\n\r\n', ownRefusal],
  ['another status 101', 'HTTP/1.1 1010 X\r\n\r\n', ownRefusal],
  ['another protocol', 'SSH-2.0-x\r\n\r\n', ownRefusal],
  ['a head without end', `HTTP/1.1 101 X\r\n${'x: y\r\n'.repeat(10_000)}`, ownRefusal],
  ['half a head', 'HTTP/1.1 101 X\r\nupgrade: web', ownRefusal],
  ['nothing', '', ownRefusal],
  [
    'a page as a refusal',
    'HTTP/1.1 404 X\r\ncontent-type: text/html\r\ncontent-length: 8\r\n\r\n<script>',
    /^HTTP\/1\.1 404 .*application\/json.*nosniff.*"code":"target_not_found","message":"The browser refuses/s,
  ],
  [
    'a refusal with its reason',
    'HTTP/1.1 404 X\r\ncontent-length: 18\r\n\r\n{"message":"no T"}',
    /^HTTP\/1\.1 404 .*"message":"no T"\}$/s,
  ],
]
for (const [what, written, got] of handshakeAnswers) {
  test(`a client that opens a WebSocket gets response headers of berth when the agent sends ${what}`, async (context) => {
    const agent = await takenOver(context, (socket) => socket.end(written))
    const port = await serveRelay(context, agent)

    assert.match(await sendUpgrade(port), got)
  })
}

test('data that an agent sends after its handshake follows our handshake, in any number of chunks', async (context) => {
  const agent = await takenOver(context, async (socket) => {
    for (const byte of `${acceptsNothing}\r\nfirst`) {
      socket.write(byte)
      await immediate()
    }
    socket.end(' frames')
  })
  const port = await serveRelay(context, agent)

  assert.match(await sendUpgrade(port), /^HTTP\/1\.1 101 .*\r\n\r\nfirst frames$/s)
})

/** A relay that admits everyone to the one agent. */
async function serveRelay(context: TestContext, machine: ReachableMachine): Promise<number> {
  const server = createHttpServer()
  const relay = new Relay({
    access: { admit: async () => ({ id: 'brwtest' as SessionId }) } as unknown as SessionAccess,
    machines: { get: () => machine } as unknown as SessionMachines,
    connections: new SessionConnections(),
    logger: createLogger({ name: 'test', level: 'silent', json: true }),
  })
  server.on('upgrade', relay.take)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  context.after(() => {
    relay.close()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** Returns everything that is received until the connection ends. */
async function sendUpgrade(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  const key = Buffer.from('0123456789abcdef').toString('base64')
  socket.write(
    `GET /s/brwtest/cdp?jwt=x HTTP/1.1\r\nhost: berth\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: ${key}\r\nsec-websocket-version: 13\r\n\r\n`,
  )
  return text(socket)
}
