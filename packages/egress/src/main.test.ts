import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, stat } from 'node:fs/promises'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { startEgressProcess } from './testing/egress-process.ts'
import { startHttpServer, startTcpServer } from './testing/loopback-server.ts'
import { closeOf, fetchThrough, openThrough, openTunnelThrough, sendRaw, textOf } from './testing/proxy-client.ts'
import { through } from './testing/proxy-server.ts'

const MiB = 1024 * 1024

test('serves, and on SIGTERM leaves nothing behind', async () => {
  await using server = await startHttpServer((_request, response) => response.end('served'))
  await using egress = await startEgressProcess()
  await egress.setPolicy({ allow: [server.authority], own_addresses: [] })
  const machine = await egress.serve('brw_a')
  const answer = await fetchThrough(machine, `http://${server.authority}/`)
  const modes = await Promise.all([egress.controlSocket, machine].map(async (path) => (await stat(path)).mode & 0o777))
  const tunnel = await openTunnelThrough(machine, server.authority)
  const cut = closeOf(tunnel.socket)

  egress.child.kill('SIGTERM')
  const [code] = await once(egress.child, 'exit')
  await cut

  assert.equal(answer.body, 'served')
  assert.deepEqual(modes, [0o600, 0o600])
  assert.equal(code, 0)
  assert.deepEqual(await readdir(egress.folder), [])
})

test('takes over from one that was killed, but not from one that lives', async () => {
  await using egress = await startEgressProcess()
  const start = () =>
    spawn(process.execPath, [new URL('main.ts', import.meta.url).pathname, '--control-socket', egress.controlSocket])

  const second = start()
  const [message, [code]] = await Promise.all([textOf(second.stderr), once(second, 'exit')])
  egress.child.kill('SIGKILL')
  await once(egress.child, 'exit')
  const third = start()
  await once(third.stderr, 'data')
  const state = JSON.parse(await egress.control('GET', '/state'))
  third.kill('SIGTERM')
  await once(third, 'exit')

  assert.equal(code, 1)
  assert.match(message, /^egress: another egress listens on .*\n$/)
  assert.equal(state.pid, third.pid)
})

test('says in one line what is wrong with its command line', async () => {
  for (const commandLine of [[], ['--control-socket', 'x', '--log-level', 'loud'], ['--nonsense']]) {
    const child = spawn(process.execPath, [new URL('main.ts', import.meta.url).pathname, ...commandLine])
    const [message, [code]] = await Promise.all([textOf(child.stderr), once(child, 'exit')])

    assert.equal(code, 1)
    assert.match(message, /^egress: [^\n]+\n$/)
  }
})

test('goes on when nobody reads its log any more', async () => {
  await using egress = await startEgressProcess()
  const machine = await egress.serve('brw_a')
  egress.child.stderr?.destroy()

  const statuses = []
  for (let round = 0; round < 3; round += 1) statuses.push((await fetchThrough(machine, 'http://127.0.0.1:1/')).status)

  assert.deepEqual(statuses, [403, 403, 403])
})

test('logs hosts and ports, and nothing else of what passes', async () => {
  await using server = await startHttpServer((_request, response) => response.end('secret-answer'))
  await using egress = await startEgressProcess()
  await egress.setPolicy({ allow: [server.authority], own_addresses: [] })
  const machine = await egress.serve('brw_a')
  const headers = { cookie: 'secret-cookie', 'proxy-authorization': 'secret-password', authorization: 'secret-token' }

  await fetchThrough(machine, `http://${server.authority}/secret-path?secret-query`, {
    method: 'POST',
    headers,
    body: 'secret-body',
  })
  await fetchThrough(machine, 'http://127.0.0.1:1/secret-path?secret-query', { headers })
  await fetchThrough(machine, 'http://secret-user:secret-password@127.0.0.1:1/')
  await sendRaw(machine, 'CONNECT 127.0.0.1:2 HTTP/1.1\r\nProxy-Authorization: secret-password\r\n\r\n')
  await sendRaw(machine, 'secret-nonsense\r\n\r\n')
  await egress.control('DELETE', '/machines/brw_a')

  assert.match(egress.log(), /127\.0\.0\.1, port 1/)
  assert.match(egress.log(), /127\.0\.0\.1, port 2/)
  assert.doesNotMatch(egress.log(), /secret/)
})

test('keeps its memory flat while large bodies pass to slow readers', async () => {
  const chunk = Buffer.alloc(MiB)
  const much = () => Readable.from(Array.from({ length: 200 }, () => chunk))
  await using server = await startHttpServer((incoming, response) => {
    if (incoming.method === 'GET') much().pipe(response)
    else void countSlowly(incoming).then((length) => response.end(String(length)))
  })
  await using stream = await startTcpServer((socket) => void much().pipe(socket))
  await using proxy = await startTcpServer((socket) => {
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      much().pipe(socket)
    })
  })
  await using egress = await startEgressProcess()
  await egress.setPolicy({ allow: ['127.0.0.1'], own_addresses: [] })
  const machine = await egress.serve('brw_a')
  await fetchThrough(machine, `http://${server.authority}/`, { method: 'POST', body: 'warm' })
  const before = await egress.peakMemory()

  const downloaded = await countSlowly(await openThrough(machine, `http://${server.authority}/`))
  const uploaded = await fetchThrough(machine, `http://${server.authority}/`, { method: 'POST', body: much() })
  using tunnel = await openTunnelThrough(machine, stream.authority)
  const tunnelled = await countSlowly(tunnel.socket)
  await egress.control('PUT', '/machines/brw_a', { socket_path: machine, settings: through(proxy.port) })
  using proxiedTunnel = await openTunnelThrough(machine, 'far.test:443')
  const proxied = await countSlowly(proxiedTunnel.socket)

  assert.deepEqual(
    [downloaded, Number(uploaded.body), tunnelled, proxied],
    [200 * MiB, 200 * MiB, 200 * MiB, 200 * MiB],
  )
  const growth = (await egress.peakMemory()) - before
  assert.ok(growth < 80, `grew by ${growth} MiB`)
})

test('has no more files open after its clients have gone than before', async () => {
  await using server = await startHttpServer((incoming, response) => {
    if (incoming.url === '/streams') response.write('begin')
    else if (incoming.url === '/ends') response.end('end')
  })
  await using egress = await startEgressProcess()
  await egress.setPolicy({ allow: [server.authority], own_addresses: [] })
  const machine = await egress.serve('brw_a')
  const openFiles = async () => (await readdir(`/proc/${egress.child.pid}/fd`)).length
  const before = await openFiles()

  for (let round = 0; round < 50; round += 1) {
    const streams = await openThrough(machine, `http://${server.authority}/streams`)
    const tunnel = await openTunnelThrough(machine, server.authority)
    await fetchThrough(machine, `http://${server.authority}/ends`)
    await fetchThrough(machine, 'http://127.0.0.1:1/')
    const abandoned = connect(machine).end(`GET http://${server.authority}/waits HTTP/1.1\r\nhost: x\r\n\r\n`)
    streams.on('error', () => {}).destroy()
    tunnel.socket.destroy()
    await closeOf(abandoned)
  }

  await server.untilAbandoned()
  while ((await openFiles()) > before) await egress.control('GET', '/state')
})

/** Reads slower than a sender on loopback writes. */
async function countSlowly(stream: Readable): Promise<number> {
  let length = 0
  for await (const chunk of stream) {
    length += (chunk as Buffer).length
    await new Promise(setImmediate)
  }
  return length
}
