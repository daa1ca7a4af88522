import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { peakMemory, startEgressProcess } from './testing/egress-process.ts'
import { startTcpServer } from './testing/loopback-server.ts'
import { through } from './testing/proxy-server.ts'
import { closeOf, textOf } from './testing/test-machine.ts'

const MiB = 1024 * 1024
const main = new URL('main.ts', import.meta.url).pathname

test('serves, and on SIGTERM leaves nothing behind', async () => {
  await using server = await startTcpServer((socket) => void socket.pipe(socket))
  await using egress = await startEgressProcess()
  await egress.setPolicy({ allow: [server.authority], own_addresses: [] })
  const machine = await egress.serve('brw_a')
  const connection = await machine.connect(server.authority)
  connection.socket.write('hello')
  const [echoed] = await once(connection.socket, 'data')
  const sockets = [egress.controlSocket, machine.socketPath]
  const modes = await Promise.all(sockets.map(async (path) => (await stat(path)).mode & 0o777))
  const cut = closeOf(connection.socket)
  const workers = await egress.workers()

  egress.child.kill('SIGTERM')
  const [code] = await once(egress.child, 'exit')
  await cut

  assert.equal(String(echoed), 'hello')
  assert.deepEqual(modes, [0o600, 0o600])
  assert.equal(code, 0)
  assert.deepEqual(await readdir(egress.folder), [])
  for (const pid of workers) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
})

test('replaces a killed process, whose workers have ended, but not a running one', async () => {
  await using server = await startTcpServer((socket) => void socket.resume())
  await using egress = await startEgressProcess()
  await egress.setPolicy({ allow: [server.authority], own_addresses: [] })
  const machine = await egress.serve('brw_a')
  const connection = await machine.connect(server.authority)
  const start = () => spawn(process.execPath, [main, '--control-socket', egress.controlSocket])

  const second = start()
  const [message, [code]] = await Promise.all([textOf(second.stderr), once(second, 'exit')])
  const cut = closeOf(connection.socket)
  egress.child.kill('SIGKILL')
  await once(egress.child, 'exit')
  await cut
  const third = start()
  await once(third.stderr, 'data')
  const state = JSON.parse(await egress.control('GET', '/state'))
  third.kill('SIGTERM')
  await once(third, 'exit')

  assert.equal(code, 1)
  assert.match(message, /^egress: another egress listens on .*\n$/)
  assert.deepEqual(state.machines, [])
})

test('reports an invalid command line in one line', async () => {
  const socket = ['--control-socket', 'x']
  for (const commandLine of [[], [...socket, '--log-level', 'loud'], [...socket, '--workers', '0'], ['--nonsense']]) {
    const child = spawn(process.execPath, [main, ...commandLine])
    const [message, [code]] = await Promise.all([textOf(child.stderr), once(child, 'exit')])

    assert.equal(code, 1)
    assert.match(message, /^egress: [^\n]+\n$/)
  }
})

test('continues when its log is not read any more', async () => {
  await using egress = await startEgressProcess({ workers: 1 })
  const machine = await egress.serve('brw_a')
  egress.child.stderr?.destroy()

  for (let round = 0; round < 3; round += 1) await assert.rejects(machine.connect('127.0.0.1:1'), { kind: 'refused' })
})

test('logs hosts and ports, and no other part of the traffic', async () => {
  await using server = await startTcpServer((socket) => void socket.pipe(socket))
  await using egress = await startEgressProcess({ workers: 1 })
  await egress.setPolicy({ allow: [server.authority], own_addresses: [] })
  const proxied = through(1, { username: 'secret-user', password: 'secret-password', ca_bundle: 'secret-bundle' })
  const machine = await egress.serve('brw_a')
  const behindProxy = await egress.serve('brw_b', proxied)

  const connection = await machine.connect(server.authority)
  connection.socket.write('secret-bytes')
  await once(connection.socket, 'data')
  await assert.rejects(machine.connect('127.0.0.1:1'))
  await behindProxy.fetch('http://page.test/secret-path?secret-query')
  const nonsense = connect(machine.socketPath)
  nonsense.write('secret-nonsense\n')
  await closeOf(nonsense)
  const lookups = connect(machine.socketPath)
  lookups.write('{"type":"lookup"}\n"secret-lookup"\n')
  await closeOf(lookups)
  await egress.control('DELETE', '/machines/brw_a')

  assert.match(egress.log(), /127\.0\.0\.1, port 1,/)
  assert.match(egress.log(), /page\.test, port 80, failure proxy-not-permitted/)
  assert.doesNotMatch(egress.log(), /secret/)
})

test('uses constant memory while much data passes to slow readers', async () => {
  const chunk = Buffer.alloc(MiB)
  const much = () => Readable.from(Array.from({ length: 100 }, () => chunk))
  await using sends = await startTcpServer((socket) => void much().pipe(socket))
  await using takes = await startTcpServer(
    (socket) => void countSlowly(socket).then((length) => socket.end(String(length))),
  )
  await using proxy = await startTcpServer((socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      much().pipe(socket)
    })
  })
  await using egress = await startEgressProcess({ workers: 1 })
  await egress.setPolicy({ allow: ['127.0.0.1'], own_addresses: [] })
  const machine = await egress.serve('brw_a')
  const behindProxy = await egress.serve('brw_b', through(proxy.port))
  const peaks = async () => Math.max(...(await Promise.all((await egress.workers()).map(peakMemory))))
  const before = await peaks()

  const down = await machine.connect(sends.authority)
  const up = await machine.connect(takes.authority)
  const tunnel = await behindProxy.connect('far.test:443')
  for await (const part of much()) if (!up.socket.write(part)) await once(up.socket, 'drain')
  machine.end(up)
  const lengths = await Promise.all([countSlowly(down.socket), textOf(up.socket), countSlowly(tunnel.socket)])

  assert.deepEqual(lengths, [100 * MiB, String(100 * MiB), 100 * MiB])
  const growth = (await peaks()) - before
  assert.ok(growth < 80, `grew by ${growth} MiB`)
})

test('has as many open files after its machines have ended as before', async () => {
  await using server = await startTcpServer((socket) => void socket.resume().once('end', () => socket.end()))
  await using egress = await startEgressProcess({ workers: 1 })
  await egress.setPolicy({ allow: [server.authority], own_addresses: [] })
  const machine = await egress.serve('brw_a')
  const [worker] = await egress.workers()
  const openFiles = async () => (await readdir(`/proc/${worker}/fd`)).length
  const before = await openFiles()

  for (let round = 0; round < 50; round += 1) {
    const ended = await machine.connect(server.authority)
    machine.end(ended)
    await textOf(ended.socket)
    machine.reset(await machine.connect(server.authority))
    await assert.rejects(machine.connect('127.0.0.1:1'))
    // Egress may reset them before they have ended.
    const abandoned = () => connect(machine.socketPath).on('error', () => {})
    abandoned().end('{"type":"connect","id":9999,"host":"127.0.0.1","port":1}\n')
    abandoned().end('{"type":')
  }

  await server.untilAbandoned()
  while ((await openFiles()) > before) await egress.control('GET', '/state')
})

/** Reads more slowly than a sender on loopback writes. */
async function countSlowly(stream: Readable): Promise<number> {
  let length = 0
  for await (const chunk of stream) {
    length += (chunk as Buffer).length
    await new Promise(setImmediate)
  }
  return length
}
