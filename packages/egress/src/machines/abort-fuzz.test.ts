import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import { startTcpServer } from '../testing/loopback-server.ts'
import { proxyAt, startFakeProxy, startSocksProxy, through } from '../testing/proxy-server.ts'
import { directly, type StartedEgress, startEgress } from '../testing/started-egress.ts'
import { TestMachine } from '../testing/test-machine.ts'

/** How many turns of the event loop a connection gets before it is aborted. */
const moments = [0, 1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30]
const isDeep = process.env.BERTH_DEEP === '1'
const tlsHello = Buffer.from([0x16, 3, 1, 2, 0, 1, ...Buffer.alloc(64)])
const request = 'GET / HTTP/1.1\r\nHost: page.test\r\n\r\n'

/** A connection of a machine and the actions that can abort it. */
interface Attempt {
  readonly egress: StartedEgress
  readonly machine: TestMachine
  readonly socket: Socket
  readonly id: number
  readonly settings: EgressSettings
}

const breaks: Record<string, (attempt: Attempt) => unknown> = {
  'the socket is closed': ({ socket }) => socket.destroy(),
  'the machine resets': ({ machine, socket, id }) => machine.reset({ id, socket }),
  'the machine ends': ({ machine, socket, id }) => machine.end({ id, socket }),
  'the machine resets with bytes behind': ({ machine, socket, id }) => {
    socket.write(Buffer.alloc(100_000))
    machine.reset({ id, socket })
  },
  'the control connection ends': ({ machine }) => machine.control.destroy(),
  'the settings change': ({ egress }) => egress.change({ ...directly, proxy: null }),
  'the settings change gently': ({ egress }) => egress.change({ ...directly, proxy: null }, {}),
  'the settings change back and forth': async ({ egress, settings }) => {
    await egress.change({ ...directly, proxy: null })
    await egress.change(settings)
  },
  'the machine is deleted': ({ egress }) => egress.machines.delete('machine-1'),
}

suite('a connection that is broken off at any moment ends nothing else', { timeout: 120_000 }, () => {
  const routes: Record<string, (port: number) => Promise<[EgressSettings, ...AsyncDisposable[]]>> = {
    directly: async () => [directly],
    'by a proxy with tunnels': async () => {
      const proxy = await startFakeProxy('exit')
      return [through(proxy.port), proxy]
    },
    'by a proxy without tunnels': async () => {
      const proxy = await startFakeProxy('exit', { connectStatus: 405 })
      return [through(proxy.port, { username: 'a', password: 'b' }), proxy]
    },
    'by a proxy that wants a password': async () => {
      const proxy = await startFakeProxy('exit', { connectStatus: 407 })
      return [through(proxy.port), proxy]
    },
    'by a proxy that says nothing': async () => {
      const proxy = await startTcpServer((socket) => void socket.resume().once('end', () => socket.end()))
      return [through(proxy.port), proxy]
    },
    'by a proxy that resets': async () => {
      const proxy = await startTcpServer((socket) => void socket.once('data', () => socket.resetAndDestroy()))
      return [through(proxy.port), proxy]
    },
    'by a proxy whose TLS is none': async () => {
      const proxy = await startTcpServer((socket) => void socket.once('data', () => socket.write('nonsense')))
      return [through(proxy.port, { protocol: 'https' }), proxy]
    },
    'by SOCKS5': async () => {
      const proxy = await startSocksProxy({ username: 'a', password: 'b' })
      return [through(proxy.port, { protocol: 'socks5', username: 'a', password: 'b' }), proxy]
    },
    'by SOCKS5 that says nothing': async () => {
      const proxy = await startTcpServer((socket) => void socket.resume().once('end', () => socket.end()))
      return [through(proxy.port, { protocol: 'socks5' }), proxy]
    },
    'by a route that is gone': async () => [{ ...directly, routes: [{ hosts: ['page.test'], proxy: null }] }],
    'to what is not allowed': async () => [{ ...directly, allowed_hosts: ['other.test'] }],
    'by a route with a bypass': async (port) => [
      { ...directly, routes: [{ hosts: ['page.test'], proxy: proxyAt(port, {}, { bypass_hosts: ['page.test'] }) }] },
    ],
  }

  for (const [name, createRoute] of Object.entries(routes)) {
    test(name, async () => {
      await using server = await startTcpServer((socket) => {
        socket.once('data', () => socket.write('an answer'))
        socket.once('end', () => socket.end())
      })
      const [settings, ...servers] = await createRoute(server.port)
      await using egress = await startEgress({ allow: ['127.0.0.1'], settings, lookup: async () => ['127.0.0.1'] })
      const serve = { socket_path: egress.socketPath, socket_mode: 0o600, settings }
      let id = 1_000

      for (const [turn, breakOff] of Object.values(breaks).entries()) {
        // Without --deep every second one, in turn.
        for (const moment of moments.filter((_moment, index) => isDeep || index % 2 === turn % 2)) {
          await egress.machines.put('machine-1', serve)
          const machine = await TestMachine.open(egress.socketPath)
          const sockets = [request, tlsHello].map((bytes) => {
            const socket = connect({ path: egress.socketPath, allowHalfOpen: true })
            socket.on('error', () => {})
            id += 1
            socket.write(`${JSON.stringify({ type: 'connect', id, host: 'page.test', port: server.port })}\n`)
            socket.write(bytes)
            return { socket, id }
          })
          await turns(moment)
          await Promise.all(sockets.map(({ socket, id }) => breakOff({ egress, machine, socket, id, settings })))
          await turns(2)
          machine.control.destroy()
          for (const { socket } of sockets) socket.destroy()
        }
      }

      await egress.machines.delete('machine-1')
      await server.untilAbandoned()
      for (const other of servers) await other[Symbol.asyncDispose]()
      assert.deepEqual(egress.log.bugs, [])
    })
  }
})

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise(setImmediate)
}

test('a machine that sends arbitrary data only breaks its own connections', async () => {
  await using server = await startTcpServer((socket) => void socket.pipe(socket))
  await using egress = await startEgress({ allow: ['127.0.0.1'] })
  using kept = await egress.machine.connect(server.authority)
  const host = '127.0.0.1'
  const lines = [
    ...['', '{}', '[]', 'null', '"x"', '{"type":"connect","id":1}', '{"type":"control"}', '\0\xff\xfe', '{"type":[]}'],
    JSON.stringify({ type: 'connect', id: kept.id, host, port: server.port }),
    JSON.stringify({ type: 'connect', id: -1, host, port: server.port }),
    JSON.stringify({ type: 'connect', id: 2 ** 60, host, port: server.port }),
    JSON.stringify({ type: 'connect', id: 77, host: '\u0000', port: 1 }),
    JSON.stringify({ type: 'connect', id: 77, host: 'x'.repeat(900), port: 1 }),
    ...['{"id":1}', '{"id":1,"name":5,"family":4}', 'x'.repeat(5_000)].map((line) => `{"type":"lookup"}\n${line}`),
  ]

  for (const line of lines) {
    const socket = connect({ path: egress.socketPath, allowHalfOpen: true })
    socket.on('error', () => {})
    socket.write(`${line}\n`, 'latin1')
    await once(socket.resume(), 'end')
    socket.destroy()
  }
  for (const line of ['x', '{"type":"closed","id":1e99,"how":"end"}', '{"type":"closed","id":9,"how":"reset"}'])
    egress.machine.control.write(`${line}\n`)
  kept.socket.write('still here')

  assert.equal(String((await once(kept.socket, 'data'))[0]), 'still here')
  assert.deepEqual(egress.log.bugs, [])
})
