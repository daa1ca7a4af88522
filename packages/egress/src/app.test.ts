import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { createApp } from './app.ts'
import { Guard } from './guard/guard.ts'
import { HostAddresses } from './guard/host-addresses.ts'
import { startHttpServer } from './testing/loopback-server.ts'
import { closeOf, fetchThrough } from './testing/proxy-client.ts'
import { directly, silentLogger, startEgress } from './testing/started-egress.ts'

const minute = 60_000

async function startApp({ onOrphaned = () => {} }: { onOrphaned?: () => void } = {}) {
  const egress = await startEgress()
  await egress.machines.delete('machine-1')
  const guard = new Guard({ hostAddresses: new HostAddresses(systemClock) })
  const app = createApp({
    guard,
    machines: egress.machines,
    lookup: async () => [],
    build: 'test-build',
    onOrphaned,
    logger: silentLogger,
  })
  const control = join(egress.folder, 'control.sock')
  await app.listen({ path: control })
  const call = (method: string, path: string, body?: unknown) =>
    fetchThrough(
      control,
      path,
      body === undefined
        ? { method }
        : { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } },
    )

  return {
    egress,
    call,
    async openLifeline() {
      const outgoing = request({ socketPath: control, path: '/lifeline', agent: false })
      outgoing.end()
      const [answer] = await once(outgoing, 'response')
      return answer.resume()
    },
    close: () => app.close(),
    async [Symbol.asyncDispose]() {
      await app.close()
      await egress[Symbol.asyncDispose]()
    },
  }
}

test('serves and forgets machines, and tells which it serves', async () => {
  await using app = await startApp()
  const route = { socket_path: join(app.egress.folder, 'a.sock'), settings: directly }

  const put = await app.call('PUT', '/machines/brw_a', route)
  const state = JSON.parse((await app.call('GET', '/state')).body)
  const deleted = await app.call('DELETE', '/machines/brw_a')
  const again = await app.call('DELETE', '/machines/brw_a')

  assert.deepEqual([put.status, deleted.status, again.status], [204, 204, 204])
  assert.deepEqual(state, { contract_version: 2, build: 'test-build', pid: process.pid, machines: ['brw_a'] })
  assert.deepEqual(JSON.parse((await app.call('GET', '/state')).body).machines, [])
})

test('keeps its policy when it is given a bad one, and says what is bad', async () => {
  await using app = await startApp()

  const good = await app.call('PUT', '/policy', { allow: ['app.test'], own_addresses: ['127.0.0.1:8080'] })
  const bad = await app.call('PUT', '/policy', { allow: ['10.0.0.1/8'], own_addresses: [] })
  const worse = await app.call('PUT', '/policy', { allow: 'app.test' })

  assert.equal(good.status, 204)
  assert.equal(bad.status, 400)
  assert.match(bad.body, /10\.0\.0\.1\/8.*begins at 10\.0\.0\.0/)
  assert.equal(worse.status, 400)
})

test('ends a lifeline only with itself', async () => {
  await using app = await startApp()
  const lifeline = await app.openLifeline()
  const ended = closeOf(lifeline)

  await app.call('GET', '/state')
  assert.equal(lifeline.closed, false)
  await app.close()

  await ended
})

test('is orphaned a minute after the last machine and the last lifeline have gone', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  let orphaned = 0
  await using app = await startApp({ onOrphaned: () => (orphaned += 1) })
  const orphanedAfter = (milliseconds: number) => {
    mock.timers.tick(milliseconds)
    return orphaned
  }

  const lifeline = await app.openLifeline()
  const withLifeline = orphanedAfter(2 * minute)
  await app.call('PUT', '/machines/brw_a', { socket_path: join(app.egress.folder, 'a.sock'), settings: directly })
  lifeline.destroy()
  await app.call('GET', '/state')
  const withMachine = orphanedAfter(2 * minute)
  await app.call('DELETE', '/machines/brw_a')
  const almost = orphanedAfter(minute - 1)
  const then = orphanedAfter(1)
  mock.timers.reset()

  assert.deepEqual([withLifeline, withMachine, almost, then], [0, 0, 0, 1])
})

test('is orphaned a minute after a start that nobody noticed', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  let orphaned = 0
  await using _app = await startApp({ onOrphaned: () => (orphaned += 1) })

  mock.timers.tick(minute)
  mock.timers.reset()

  assert.equal(orphaned, 1)
})

test('goes by a changed policy for the next connection, and keeps those that are open', async () => {
  await using server = await startHttpServer((_request, response) => response.end('served'))
  await using egress = await startEgress({ allow: [server.authority] })
  const url = `http://${server.authority}/`

  const before = await fetchThrough(egress.socketPath, url)
  egress.allow()
  const after = await fetchThrough(egress.socketPath, url)

  assert.deepEqual([before.status, after.status], [200, 403])
})
