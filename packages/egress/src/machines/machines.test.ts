import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile, rename, stat, unlink, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { startTcpServer } from '../testing/loopback-server.ts'
import { directly, startEgress } from '../testing/started-egress.ts'
import { closeOf, TestMachine } from '../testing/test-machine.ts'

test('closes all connections of a deleted machine, and none of another', async () => {
  await using server = await startTcpServer((socket) => void socket.resume().once('end', () => socket.end()))
  await using neighbourServer = await startTcpServer((socket) => void socket.pipe(socket))
  const lookedUp = Promise.withResolvers<void>()
  const lookup = () => {
    lookedUp.resolve()
    return new Promise<string[]>(() => {})
  }
  await using egress = await startEgress({ allow: ['127.0.0.1'], lookup })
  const socket_path = join(egress.folder, 'neighbour.sock')
  await egress.machines.put('neighbour', { socket_path, socket_mode: 0o600, settings: directly })
  const neighbour = await TestMachine.open(socket_path)
  using kept = await neighbour.connect(neighbourServer.authority)

  const joined = await egress.machine.connect(server.authority)
  const opening = connect(egress.socketPath)
  opening.write('{"type":"connect","id":99,"host":"slow.test","port":80}\n')
  const beginning = connect(egress.socketPath)
  beginning.write('{"type":')
  await lookedUp.promise
  const cut = [egress.machine.control, joined.socket, opening, beginning].map(closeOf)

  await egress.machines.delete('machine-1')

  await Promise.all(cut)
  await server.untilAbandoned()
  await assert.rejects(stat(egress.socketPath), { code: 'ENOENT' })
  kept.socket.write('still here')
  assert.equal(String((await once(kept.socket, 'data'))[0]), 'still here')
  assert.deepEqual(egress.machines.ids, ['neighbour'])
})

test('serves a machine again after its delete, and deletes an unknown one', async () => {
  await using egress = await startEgress()

  await egress.machines.delete('unknown')
  await egress.machines.delete('machine-1')
  await egress.machines.put('machine-1', { socket_path: egress.socketPath, socket_mode: 0o600, settings: directly })

  assert.equal(await serves(egress.socketPath), true)
})

test('keeps connections open when the route of a machine changes', async () => {
  await using echo = await startTcpServer((socket) => void socket.pipe(socket))
  await using egress = await startEgress({ allow: ['127.0.0.1'] })
  using connection = await egress.machine.connect(echo.authority)
  const moved = join(egress.folder, 'moved.sock')

  await egress.machines.put('machine-1', { socket_path: moved, socket_mode: 0o666, settings: directly })

  connection.socket.write('still here')
  assert.equal(String((await once(connection.socket, 'data'))[0]), 'still here')
  assert.equal(await serves(moved), true)
  await assert.rejects(stat(egress.socketPath), { code: 'ENOENT' })
})

test('gives the socket the mode of the route, also after changes', async () => {
  await using egress = await startEgress()
  const modes = [(await stat(egress.socketPath)).mode & 0o777]

  await egress.machines.put('machine-1', { socket_path: egress.socketPath, socket_mode: 0o660, settings: directly })

  modes.push((await stat(egress.socketPath)).mode & 0o777)
  assert.deepEqual(modes, [0o600, 0o660])
})

test('replaces the socket of a dead process, and nothing else', async () => {
  await using egress = await startEgress()
  const stale = join(egress.folder, 'stale.sock')
  const file = join(egress.folder, 'file')
  await leaveSocket(stale)
  await writeFile(file, 'precious')

  await egress.machines.put('machine-2', { socket_path: stale, socket_mode: 0o600, settings: directly })
  await assert.rejects(
    egress.machines.put('machine-3', { socket_path: file, socket_mode: 0o600, settings: directly }),
    /not a socket/,
  )
  await assert.rejects(
    egress.machines.put('machine-4', {
      socket_path: join(egress.folder, 'missing/x.sock'),
      socket_mode: 0o600,
      settings: directly,
    }),
  )

  assert.equal(await readFile(file, 'utf8'), 'precious')
  assert.deepEqual(egress.machines.ids, ['machine-1', 'machine-2'])
  assert.equal(await serves(stale), true)
})

/** Whether a machine is served on the socket. */
async function serves(socketPath: string): Promise<boolean> {
  const machine = await TestMachine.open(socketPath)
  const answer = await machine.lookup('nowhere.test')
  machine.control.destroy()
  return 'failed' in answer
}

/** Leaves a socket file behind, as a killed process does. */
async function leaveSocket(path: string): Promise<void> {
  const server = createServer().listen(path)
  await once(server, 'listening')
  await rename(path, `${path}.kept`)
  await new Promise((resolve) => server.close(resolve))
  await rename(`${path}.kept`, path)
}

test('listens again after its socket was removed', async () => {
  await using egress = await startEgress()
  await unlink(egress.socketPath)

  await egress.machines.put('machine-1', { socket_path: egress.socketPath, socket_mode: 0o600, settings: directly })

  assert.equal(await serves(egress.socketPath), true)
})

test('runs two changes of one machine in sequence', async () => {
  await using egress = await startEgress()
  const paths = ['a', 'b', 'c'].map((name) => join(egress.folder, `${name}.sock`))

  await Promise.all([
    ...paths.map((socket_path) =>
      egress.machines.put('machine-2', { socket_path, socket_mode: 0o600, settings: directly }),
    ),
    egress.machines.delete('machine-2'),
    egress.machines.put('machine-2', {
      socket_path: egress.socketPath.replace('machine-1', 'machine-2'),
      socket_mode: 0o600,
      settings: directly,
    }),
  ])

  for (const path of paths) await assert.rejects(stat(path), { code: 'ENOENT' })
  assert.equal(await serves(egress.socketPath.replace('machine-1', 'machine-2')), true)
})
