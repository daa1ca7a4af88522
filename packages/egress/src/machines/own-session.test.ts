import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { startTcpServer } from '../testing/loopback-server.ts'
import { directly, type StartedEgress, startEgress } from '../testing/started-egress.ts'
import { closeOf, NotConnected } from '../testing/test-machine.ts'

const folder = await mkdtemp(join(tmpdir(), 'berth-own-session-'))
const ownSessionSocket = join(folder, 'server.sock')
/** Replaces the server: echoes the first line and everything after it. */
const server = createServer({ allowHalfOpen: true }, (socket) => {
  socket.on('error', () => {}) // The machine was deleted.
  socket.pipe(socket)
}).listen(ownSessionSocket)
await once(server, 'listening')
after(async () => {
  server.close()
  await rm(folder, { recursive: true })
})

const firstLine = '{"type":"own-session","session_id":"session-1"}\n'
const ofSession = { ...directly, session_id: 'session-1' }
const proxy = {
  proxy: {
    upstreams: [{ protocol: 'http' as const, host: 'proxy.test', port: 80 }],
    bypass_hosts: [],
    is_operators: false,
  },
}

async function reached({ machine }: StartedEgress, destination: string): Promise<string> {
  const connection = await machine.connect(destination)
  const { socket } = connection
  machine.end(connection, 'hello')
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const own = ['127.0.0.1:8080', 'berth.test:80', '0.0.0.0:9090']
for (const destination of [
  ...['127.0.0.1:8080', 'berth.test:80', 'BERTH.test:80', '127.0.0.1:9090', '127.0.0.2:9090', '[::1]:9090'],
  ...['[::ffff:127.0.0.1]:8080', 'host.berth.internal:8080', 'host.berth.internal:9090'],
]) {
  test(`a connection to berth at ${destination} is passed to the server with the machine's session`, async () => {
    await using egress = await startEgress({
      own,
      ownSessionSocket,
      settings: ofSession,
      lookup: async () => ['127.0.0.1'],
    })

    assert.equal(await reached(egress, destination), `${firstLine}hello`)
  })
}

test('proxies and lists of allowed hosts do not affect it', async () => {
  const settings = { ...ofSession, ...proxy, allowed_hosts: ['elsewhere.test'] }
  await using egress = await startEgress({ own, ownSessionSocket, settings })

  assert.equal(await reached(egress, 'berth.test:80'), `${firstLine}hello`)
})

for (const destination of ['127.0.0.1:8081', 'berth.test:8080', 'other.test:8080', 'host.berth.internal:80']) {
  test(`a connection to ${destination} is not one to berth`, async () => {
    await using egress = await startEgress({ own, ownSessionSocket, lookup: async () => ['127.0.0.1'] })

    await assert.rejects(egress.machine.connect(destination), NotConnected)
  })
}

test('without a server socket, or while the server is stopped, there is no connection', async () => {
  await using without = await startEgress({ own, settings: ofSession })
  await using away = await startEgress({ own, ownSessionSocket: join(folder, 'nobody.sock'), settings: ofSession })

  await assert.rejects(without.machine.connect('127.0.0.1:8080'), { kind: 'refused' })
  await assert.rejects(away.machine.connect('127.0.0.1:8080'), { kind: 'connection-refused' })
})

test('a machine without a session cannot reach berth, whatever its proxy, until a session is assigned', async () => {
  const settings = { ...directly, ...proxy }
  await using egress = await startEgress({ own, ownSessionSocket, settings })

  await assert.rejects(egress.machine.connect('berth.test:80'), { kind: 'refused' })
  await egress.change({ ...settings, session_id: 'session-1' })

  assert.equal(await reached(egress, 'berth.test:80'), `${firstLine}hello`)
})

test('a connection to berth ends when its machine is assigned to another session', async () => {
  await using egress = await startEgress({ own, ownSessionSocket, settings: ofSession })
  const connection = await egress.machine.connect('127.0.0.1:8080')
  const closed = closeOf(connection.socket)

  await egress.change({ ...ofSession, session_id: 'session-2' })

  await closed
})

test('a machine can be deleted while it is connected to berth', async () => {
  await using egress = await startEgress({ own, ownSessionSocket, settings: ofSession })
  const connection = await egress.machine.connect('127.0.0.1:8080')
  const closed = closeOf(connection.socket)

  await egress.machines.delete('machine-1')

  await closed
  assert.deepEqual(egress.machines.ids, [])
})

test('an address that the operator permits with this port is reached directly', async () => {
  await using service = await startTcpServer((socket) => void socket.end('the service itself'))
  const { authority } = service
  await using egress = await startEgress({ own: [authority], ownSessionSocket, allow: [authority] })

  assert.equal(await reached(egress, authority), 'the service itself')
})

test("berth's names are sent with their connections, and the host's name is resolved", async () => {
  await using egress = await startEgress({ own, ownSessionSocket, lookup: async () => ['203.0.113.7'] })

  const answers = await Promise.all(
    ['berth.test', 'host.berth.internal', 'other.test'].map((name) => egress.machine.lookup(name)),
  )

  assert.deepEqual(
    answers.map((answer) => 'by_name' in answer),
    [true, true, false],
  )
})
