import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile, rename, stat, unlink, writeFile } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { startHttpServer, startTcpServer } from './testing/loopback-server.ts'
import { closeOf, fetchThrough, openThrough, openTunnelThrough, textOf } from './testing/proxy-client.ts'
import { directly, startEgress } from './testing/started-egress.ts'

test('cuts every kind of connection of a machine that is deleted, and no other machine', async () => {
  await using server = await startHttpServer((incoming, response) => {
    if (incoming.url === '/streams') response.write('begin')
  })
  server.server.on('upgrade', (_incoming, socket: Socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n')
    socket.resume().once('end', () => socket.end())
  })
  await using neighbourServer = await startTcpServer((socket) => void socket.pipe(socket))
  const lookedUp = Promise.withResolvers<void>()
  const lookup = () => {
    lookedUp.resolve()
    return new Promise<string[]>(() => {})
  }
  await using egress = await startEgress({ allow: ['127.0.0.1'], lookup })
  const neighbour = join(egress.folder, 'neighbour.sock')
  await egress.machines.put('neighbour', { socket_path: neighbour, socket_mode: 0o600, settings: directly })
  using kept = await openTunnelThrough(neighbour, neighbourServer.authority)

  const clients = [
    'GET http://AUTHORITY/streams HTTP/1.1\r\n\r\n',
    'GET http://AUTHORITY/waits HTTP/1.1\r\n\r\n',
    'CONNECT AUTHORITY HTTP/1.1\r\n\r\n',
    'GET http://AUTHORITY/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n',
    'CONNECT slow.test:1 HTTP/1.1\r\n\r\n',
    'GET htt',
  ].map((text) => {
    const client = connect(egress.socketPath)
    client.write(text.replace('AUTHORITY', server.authority))
    return client
  })
  while (server.connections() < 4) await server.nextConnection()
  await lookedUp.promise
  const cut = clients.map(closeOf)

  await egress.machines.delete('machine-1')

  await Promise.all(cut)
  await server.untilAbandoned()
  await assert.rejects(stat(egress.socketPath), { code: 'ENOENT' })
  kept.socket.write('still here')
  assert.equal(String((await once(kept.socket, 'data'))[0]), 'still here')
  assert.deepEqual(egress.machines.ids, ['neighbour'])
})

test('takes a machine again after it was deleted, and deletes an unknown one', async () => {
  await using server = await startHttpServer((_request, response) => response.end('served'))
  await using egress = await startEgress({ allow: [server.authority] })

  await egress.machines.delete('unknown')
  await egress.machines.delete('machine-1')
  await egress.machines.put('machine-1', { socket_path: egress.socketPath, socket_mode: 0o600, settings: directly })

  assert.equal((await fetchThrough(egress.socketPath, `http://${server.authority}/`)).body, 'served')
})

test('keeps connections open when the route of a machine changes', async () => {
  await using server = await startHttpServer((incoming, response) => {
    if (incoming.url === '/') response.end('served')
    else {
      response.write('begin ')
      server.server.once('finish it', () => response.end('end'))
    }
  })
  await using echo = await startTcpServer((socket) => void socket.pipe(socket))
  await using egress = await startEgress({ allow: ['127.0.0.1'] })
  using tunnel = await openTunnelThrough(egress.socketPath, echo.authority)
  const answer = await openThrough(egress.socketPath, `http://${server.authority}/streams`)
  const moved = join(egress.folder, 'moved.sock')

  await egress.machines.put('machine-1', { socket_path: moved, socket_mode: 0o666, settings: directly })

  server.server.emit('finish it')
  tunnel.socket.write('still here')
  assert.equal(await textOf(answer), 'begin end')
  assert.equal(String((await once(tunnel.socket, 'data'))[0]), 'still here')
  assert.equal((await fetchThrough(moved, `http://${server.authority}/`)).body, 'served')
  await assert.rejects(stat(egress.socketPath), { code: 'ENOENT' })
})

test('gives the socket the mode that the route says, also later', async () => {
  await using egress = await startEgress()
  const modes = [(await stat(egress.socketPath)).mode & 0o777]

  await egress.machines.put('machine-1', { socket_path: egress.socketPath, socket_mode: 0o660, settings: directly })

  modes.push((await stat(egress.socketPath)).mode & 0o777)
  assert.deepEqual(modes, [0o600, 0o660])
})

test('replaces a socket that a dead process left, and nothing else', async () => {
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
  assert.equal((await fetchThrough(stale, 'http://nowhere.test/')).status, 502)
})

/** What is left of a listener that had no time to clean up: a process that is killed leaves its socket. */
async function leaveSocket(path: string): Promise<void> {
  const server = createServer().listen(path)
  await once(server, 'listening')
  await rename(path, `${path}.kept`)
  await new Promise((resolve) => server.close(resolve))
  await rename(`${path}.kept`, path)
}

test('listens again where its socket was taken away', async () => {
  await using egress = await startEgress()
  await unlink(egress.socketPath)

  await egress.machines.put('machine-1', { socket_path: egress.socketPath, socket_mode: 0o600, settings: directly })

  assert.equal((await fetchThrough(egress.socketPath, 'http://nowhere.test/')).status, 502)
})

test('serves two changes of one machine one after the other', async () => {
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
  assert.equal(
    (await fetchThrough(egress.socketPath.replace('machine-1', 'machine-2'), 'http://nowhere.test/')).status,
    502,
  )
})
