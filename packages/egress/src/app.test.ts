import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import type { EgressPolicy } from '@berth/contract/egress/egress-endpoints.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { createApp } from './app.ts'
import { callControl } from './testing/egress-process.ts'
import { directly } from './testing/started-egress.ts'
import { closeOf } from './testing/test-machine.ts'

const minute = 60_000
const route = { socket_path: '/nowhere/a.sock', settings: directly }

/** Runs the control socket with workers that only record requests. */
async function startApp({ onEnd = () => {} }: { onEnd?: (reason: string) => void } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'berth-egress-'))
  const served = new Set<string>()
  const policies: EgressPolicy[] = []
  const app = createApp({
    workers: {
      get ids() {
        return [...served]
      },
      setPolicy: async (policy) => void policies.push(policy),
      put: async (id) => void served.add(id),
      delete: async (id) => void served.delete(id),
      probe: async () => ({ outcome: 'reached', latency_ms: 1 }),
    },
    build: 'test-build',
    onEnd,
    logger: createLogger({ name: 'egress', level: 'silent', json: true }),
  })
  const control = join(folder, 'control.sock')
  await app.listen({ path: control })

  return {
    policies,
    call: (method: string, path: string, body?: unknown) => callControl(control, method, path, body),
    async openLifeline() {
      const outgoing = request({ socketPath: control, path: '/lifeline', agent: false })
      outgoing.end()
      const [answer] = await once(outgoing, 'response')
      return answer.resume()
    },
    close: () => app.close(),
    async [Symbol.asyncDispose]() {
      await app.close()
      await rm(folder, { recursive: true })
    },
  }
}

test('serves and removes machines, and lists those that it serves', async () => {
  await using app = await startApp()

  await app.call('PUT', '/machines/brw_a', route)
  const state = JSON.parse(await app.call('GET', '/state'))
  await app.call('DELETE', '/machines/brw_a')
  await app.call('DELETE', '/machines/brw_a')

  assert.deepEqual(state, { contract_version: 5, build: 'test-build', machines: ['brw_a'] })
  assert.deepEqual(JSON.parse(await app.call('GET', '/state')).machines, [])
})

test('keeps its policy when it gets an invalid one, and reports the fault', async () => {
  await using app = await startApp()

  await app.call('PUT', '/policy', { allow: ['app.test'], own_addresses: ['127.0.0.1:8080'] })
  const bad = app.call('PUT', '/policy', { allow: ['10.0.0.1/8'], own_addresses: [] })
  const worse = app.call('PUT', '/policy', { allow: 'app.test' })

  await assert.rejects(bad, /^Error: 400 .*10\.0\.0\.1\/8.*begins at 10\.0\.0\.0/)
  await assert.rejects(worse, /^Error: 400 /)
  assert.deepEqual(app.policies, [{ allow: ['app.test'], own_addresses: ['127.0.0.1:8080'] }])
})

test('ends on request', async () => {
  const ended = Promise.withResolvers<string>()
  await using app = await startApp({ onEnd: ended.resolve })

  await app.call('POST', '/end')

  assert.match(await ended.promise, /requested/)
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

test('is orphaned a minute after the end of the last machine and the last lifeline', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  let orphaned = 0
  await using app = await startApp({ onEnd: () => orphaned++ })
  const orphanedAfter = (milliseconds: number) => {
    mock.timers.tick(milliseconds)
    return orphaned
  }

  const lifeline = await app.openLifeline()
  const withLifeline = orphanedAfter(2 * minute)
  await app.call('PUT', '/machines/brw_a', route)
  lifeline.destroy()
  await app.call('GET', '/state')
  const withMachine = orphanedAfter(2 * minute)
  await app.call('DELETE', '/machines/brw_a')
  const almost = orphanedAfter(minute - 1)
  const then = orphanedAfter(1)
  mock.timers.reset()

  assert.deepEqual([withLifeline, withMachine, almost, then], [0, 0, 0, 1])
})

test('is orphaned a minute after a start without any request', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  let orphaned = 0
  await using _app = await startApp({ onEnd: () => orphaned++ })

  mock.timers.tick(minute)
  mock.timers.reset()

  assert.equal(orphaned, 1)
})
