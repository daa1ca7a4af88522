import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { TestServer } from '../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

test('the row of an interrupted create is removed, and its name becomes free', async () => {
  const project = await server.project()
  const { session_id } = await project.session({ name: 'half-made' })
  const id = session_id as SessionId
  await server.services.machines.stop(await server.row(id))
  await server.database.updateTable('sessions').set({ state: 'starting' }).where('id', '=', id).execute()

  await server.reap()

  assert.equal((await project.call('GET', `/browsers/${session_id}?include_deleted=true`)).status, 404)
  assert.equal((await project.call('POST', '/browsers', { name: 'half-made' })).status, 200)
})

test('an active session whose machine has disappeared unnoticed is ended', async () => {
  const project = await server.project()
  const { session_id } = await project.session()
  await server.services.machines.stop(await server.row(session_id))

  await server.reap()

  assert.equal((await project.call('GET', `/browsers/${session_id}`)).status, 404)
  assert.equal((await project.call('GET', `/browsers/${session_id}?include_deleted=true`)).body.usage_status, 'ready')
})

test('a session that is starting is left to its creator', async () => {
  const project = await server.project()
  server.host.hangNextStart()
  const creation = project.call<{ code: string }>('POST', '/browsers', { name: 'in-the-making' })
  const isStarting = async () =>
    (await server.services.store.listUnfinished('test')).some(({ state }) => state === 'starting') &&
    server.host.starts.size > 0
  while (!(await isStarting())) await delay(5)

  await server.reap()

  assert.equal(server.host.starts.size, 1)
  assert.equal((await project.call('DELETE', '/browsers/in-the-making')).status, 204)
  assert.equal((await creation).body.code, 'session_ended_while_starting')
})

test('without room for a session, the response is a retryable 529, and nothing is left', async () => {
  const project = await server.project()
  server.host.failNextStart(new BerthError('capacity_exhausted', { reason: 'the fake host is full.' }))

  const { status, headers, body } = await project.call<{ code: string; message: string }>('POST', '/browsers', {
    name: 'one-more',
  })

  assert.deepEqual([status, headers.get('x-should-retry'), body.code], [529, 'true', 'capacity_exhausted'])
  assert.match(body.message, /the fake host is full/)
  assert.equal((await project.call('POST', '/browsers', { name: 'one-more' })).status, 200)
})

test('processes that were killed by the memory limit of a session are counted once', async () => {
  const project = await server.project()
  const { session_id } = await project.session()
  const total = async () =>
    /^berth_memory_kills_total (\d+)$/m.exec(await (await fetch(`${server.url}/metrics`)).text())?.[1]
  const { memoryWatch } = server.services

  await memoryWatch.checkAll()
  assert.equal(await total(), '0')
  server.host.memoryKills.set(server.host.specOf(session_id as SessionId).id, 2)
  await memoryWatch.checkAll()
  await memoryWatch.checkAll()
  assert.equal(await total(), '2')
  server.host.memoryKills.set(server.host.specOf(session_id as SessionId).id, 3)
  await memoryWatch.checkAll()

  assert.equal(await total(), '3')
})
