import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { startTcpServer, unusedPort } from '../testing/loopback-server.ts'
import { startEgress } from '../testing/started-egress.ts'
import { closeOf, type NotConnected, textOf } from '../testing/test-machine.ts'

const MiB = 1024 * 1024

test('copies bytes in both directions, and reports the address of the connection', async () => {
  await using server = await startTcpServer((socket) => void socket.pipe(socket))
  await using egress = await startEgress({ allow: ['echo.test'], lookup: async () => ['127.0.0.1'] })
  using connection = await egress.machine.connect(`echo.test:${server.port}`)

  connection.socket.write('there and back')
  const [back] = await once(connection.socket, 'data')

  assert.equal(String(back), 'there and back')
  assert.deepEqual(connection.opened, { type: 'connected', address: '127.0.0.1', port: server.port })
})

test('lets either side end first and still receive, and announces the end', async () => {
  const lastWords = Promise.withResolvers<string>()
  await using answersAtEnd = await startTcpServer((socket) => {
    void textOf(socket).then((heard) => socket.end(`heard ${heard}`))
  })
  await using endsFirst = await startTcpServer((socket) => {
    socket.end('bye')
    lastWords.resolve(textOf(socket))
  })
  await using egress = await startEgress({ allow: ['127.0.0.1'] })
  const { machine } = egress

  const asking = await machine.connect(answersAtEnd.authority)
  machine.end(asking, 'question')
  const answer = await textOf(asking.socket)
  const lateTalker = await machine.connect(endsFirst.authority)
  const goodbye = await textOf(lateTalker.socket)
  const said = await machine.closed(lateTalker)
  machine.end(lateTalker, 'last words')

  assert.equal(answer, 'heard question')
  assert.deepEqual([goodbye, said], ['bye', 'end'])
  assert.equal(await lastWords.promise, 'last words')
  await endsFirst.untilAbandoned()
})

test('forwards a reset in either direction', async () => {
  const broken = Promise.withResolvers<NodeJS.ErrnoException>()
  await using server = await startTcpServer((socket) => {
    socket.on('error', broken.resolve)
    socket.once('data', (data) => (String(data) === 'reset' ? socket.resetAndDestroy() : socket.write('here')))
  })
  await using egress = await startEgress({ allow: ['127.0.0.1'] })
  const { machine } = egress

  const resetThere = await machine.connect(server.authority)
  resetThere.socket.write('reset')
  const said = await machine.closed(resetThere)
  await closeOf(resetThere.socket)
  const resetHere = await machine.connect(server.authority)
  resetHere.socket.write('hello')
  await once(resetHere.socket, 'data')
  machine.reset(resetHere)

  assert.equal(said, 'reset')
  assert.equal((await broken.promise).code, 'ECONNRESET')
  await server.untilAbandoned()
})

test('reports why a connection failed', async () => {
  await using server = await startTcpServer(() => {})
  const closedPort = await unusedPort()
  await using egress = await startEgress({
    allow: ['127.0.0.1:1', `127.0.0.1:${closedPort}`],
    lookup: async (name) => (name === 'inside.test' ? ['10.0.0.1'] : []),
  })
  const kinds = {
    [server.authority]: 'refused',
    'inside.test:80': 'refused',
    [`127.0.0.1:${closedPort}`]: 'connection-refused',
    'nowhere.test:443': 'name-not-found',
    'host.berth.internal:80': 'name-not-found',
    'not a name:80': 'bad-request',
    '8.8.8.8:0': 'bad-request',
    '8.8.8.8:65536': 'bad-request',
  }

  const found: Record<string, string> = {}
  for (const destination of Object.keys(kinds)) {
    found[destination] = await egress.machine.connect(destination).then(
      () => 'connected',
      (error: NotConnected) => error.kind,
    )
  }

  assert.deepEqual(found, kinds)
  assert.equal(server.connections(), 0)
})

test("reaches the host's loopback by name only if an entry names it, and only on its ports", async () => {
  await using server = await startTcpServer((socket) => socket.end('of the host'))
  await using egress = await startEgress({ allow: [`host.berth.internal:${server.port}`] })
  const { machine } = egress

  const allowed = await textOf((await machine.connect(`Host.Berth.internal.:${server.port}`)).socket)
  const otherPort = machine.connect(`host.berth.internal:${server.port - 1}`)
  const byAddress = machine.connect(server.authority)

  assert.equal(allowed, 'of the host')
  await assert.rejects(otherPort, { kind: 'refused' })
  await assert.rejects(byAddress, { kind: 'refused' })
  assert.deepEqual(await machine.lookup('host.berth.internal'), { id: machine.lastId, by_name: true })
})

test('resets every connection of a machine whose control connection has ended', async () => {
  await using server = await startTcpServer((socket) => void socket.resume())
  await using egress = await startEgress({ allow: ['127.0.0.1'] })
  const { socket } = await egress.machine.connect(server.authority)

  egress.machine.control.destroy()
  await closeOf(socket)

  await server.untilAbandoned()
  await assert.rejects(egress.machine.connect(server.authority), { kind: 'bad-request' })
})

test('treats an unannounced end as a reset when the control connection has ended too', async () => {
  const broken = Promise.withResolvers<NodeJS.ErrnoException>()
  await using server = await startTcpServer((socket) => {
    socket.on('error', broken.resolve)
    socket.write('hello')
  })
  await using egress = await startEgress({ allow: ['127.0.0.1'] })
  const { socket } = await egress.machine.connect(server.authority)
  await once(socket, 'data')

  socket.end()
  egress.machine.control.destroy()

  assert.equal((await broken.promise).code, 'ECONNRESET')
})

test('resets a server that continues to send to a machine that has ended', async () => {
  const chunk = Buffer.alloc(64 * 1024)
  await using server = await startTcpServer((socket) => void Readable.from(endlessly(chunk)).pipe(socket))
  await using egress = await startEgress({ allow: ['127.0.0.1'] })

  const connection = await egress.machine.connect(server.authority)
  await once(connection.socket, 'data')
  egress.machine.reset(connection)

  await server.untilAbandoned()
})

function* endlessly(chunk: Buffer): Generator<Buffer> {
  for (;;) yield chunk
}

test('cancels connections that the machine has cancelled', async () => {
  const asked = Promise.withResolvers<void>()
  const never = () => {
    asked.resolve()
    return new Promise<string[]>(() => {})
  }
  await using egress = await startEgress({ lookup: never })
  const socket = connect(egress.socketPath)
  socket.write('{"type":"connect","id":9,"host":"slow.test","port":80}\n')
  await asked.promise

  socket.end()
  await closeOf(socket)

  assert.deepEqual(egress.log.bugs, [])
})

test('transfers much data in both directions, unchanged, also to slow readers', async () => {
  const sent = createHash('sha256')
  const chunks = Array.from({ length: 64 }, (_, index) => Buffer.alloc(MiB, index))
  for (const chunk of chunks) sent.update(chunk)
  await using server = await startTcpServer((socket) => void socket.pipe(socket))
  await using egress = await startEgress({ allow: ['127.0.0.1'] })
  const connection = await egress.machine.connect(server.authority)

  const written = (async () => {
    for (const chunk of chunks) if (!connection.socket.write(chunk)) await once(connection.socket, 'drain')
    egress.machine.end(connection)
  })()
  const received = createHash('sha256')
  for await (const chunk of connection.socket as AsyncIterable<Buffer>) {
    received.update(chunk)
    await new Promise(setImmediate)
  }
  await written

  assert.equal(received.digest('hex'), sent.digest('hex'))
  assert.equal(await egress.machine.closed(connection), 'end')
})

test('serves nothing on a connection without a valid greeting', async () => {
  await using egress = await startEgress({ allow: ['127.0.0.1'] })
  const answers = []
  for (const text of [
    'GET / HTTP/1.1\r\n\r\n',
    '{"type":"connect"}\n',
    '[]\n',
    `${'x'.repeat(2_000)}`,
    '{"type":"what"}\n',
  ]) {
    const socket: Socket = connect(egress.socketPath)
    socket.on('error', () => {})
    socket.write(text)
    answers.push(await textOf(socket).catch(() => 'reset'))
  }

  const bad = '{"type":"failed","kind":"bad-request"}\n'
  assert.deepEqual(answers, [bad, bad, bad, '', bad])
})
