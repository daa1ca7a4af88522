import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { type TestProject, TestServer } from '../../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

test('of ten simultaneous deletes one ends the session and the others find none', async () => {
  const project = await server.project()
  const { session_id } = await project.session()

  const answers = await Promise.all(Array.from({ length: 10 }, () => project.call('DELETE', `/browsers/${session_id}`)))

  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [204, ...Array.from({ length: 9 }, () => 404)])
})

test('a deleted session can be read on request, with its final usage', async () => {
  const project = await server.project()
  const { session_id } = await project.session({ name: 'gone' })
  server.clock.advance(90)

  await project.call('DELETE', '/browsers/gone')

  assert.equal((await project.call('GET', `/browsers/${session_id}`)).status, 404)
  assert.equal(
    (await project.call('GET', '/browsers/gone?include_deleted=true')).status,
    404,
    'a name is of active sessions',
  )
  const { body } = await project.call('GET', `/browsers/${session_id}?include_deleted=true`)
  assert.equal(body.deleted_at, server.clock.now().toISOString())
  assert.equal(body.usage_status, 'ready')
  assert.equal(body.usage.uptime_ms, 90_000)
})

test('lists show active, deleted or all sessions', async () => {
  const project = await server.project()
  const first = await project.session()
  const second = await project.session()
  await project.call('DELETE', `/browsers/${first.session_id}`)

  assert.deepEqual(await idsOf(project, ''), [second.session_id])
  assert.deepEqual(await idsOf(project, '?status=deleted'), [first.session_id])
  assert.deepEqual(new Set(await idsOf(project, '?status=all')), new Set([first.session_id, second.session_id]))
  assert.equal((await idsOf(project, '?include_deleted=true')).length, 2)
})

test('lists are filtered by tags, text and region', async () => {
  const project = await server.project()
  const session = await project.session({ name: 'Alpha-1', tags: { env: 'prod', team: 'a' } })
  await project.session({ name: 'beta', tags: { env: 'prod' } })

  assert.deepEqual(await idsOf(project, '?tags[env]=prod&tags[team]=a'), [session.session_id])
  assert.deepEqual(await idsOf(project, '?query=alpha'), [session.session_id])
  assert.deepEqual(await idsOf(project, `?query=${session.session_id}`), [session.session_id])
  assert.deepEqual(await idsOf(project, '?query=%25'), [])
  assert.equal((await idsOf(project, '?region=us-east')).length, 2)
  assert.equal((await idsOf(project, '?region=eu-west')).length, 0)
})

test('a session ends when it has been idle for its timeout', async () => {
  const project = await server.project()
  server.host.firstState = { idle_since: server.clock.now().getTime() }
  const { session_id } = await project.session({ timeout_seconds: 60 })
  server.host.firstState = {}

  server.clock.advance(59)
  await server.reap()
  assert.equal((await project.call('GET', `/browsers/${session_id}`)).status, 200)
  server.clock.advance(1)
  await server.reap()

  assert.equal((await project.call('GET', `/browsers/${session_id}`)).status, 404)
  assert.equal(server.host.has(session_id as SessionId), false)
})

test('a session with a client does not end, and its idle time starts when the client disconnects', async () => {
  const project = await server.project()
  server.host.firstState = { idle_since: server.clock.now().getTime() }
  const { session_id } = await project.session({ timeout_seconds: 60 })
  server.host.firstState = {}
  const agent = server.host.agentOf(session_id as SessionId)

  agent.setState({ idle_since: null })
  server.clock.advance(100)
  await server.reap()
  assert.equal((await project.call('GET', `/browsers/${session_id}`)).status, 200)
  agent.setState({ idle_since: server.clock.now().getTime() })
  server.clock.advance(59)
  await server.reap()

  assert.equal((await project.call('GET', `/browsers/${session_id}`)).status, 200)
})

test('a session whose machine ends is deleted', async () => {
  const project = await server.project()
  const { session_id } = await project.session()

  server.host.agentOf(session_id as SessionId).kill()
  while ((await project.call('GET', `/browsers/${session_id}`)).status !== 404) await delay(10)

  const { body } = await project.call('GET', `/browsers/${session_id}?include_deleted=true`)
  assert.ok(body.deleted_at)
})

test('a crash of Chromium that the agent repairs leaves the session active', async () => {
  const project = await server.project()
  const { session_id } = await project.session()

  server.host.agentOf(session_id as SessionId).crash('chromium', 'exit code 139')

  assert.equal((await project.call('GET', `/browsers/${session_id}`)).status, 200)
})

test('after a crash of the server live sessions continue with their names and addresses', async () => {
  const project = await server.project()
  const session = await project.session({ name: 'kept' })

  await server.crash()
  await server.start()

  const { body } = await project.call('GET', '/browsers/kept')
  assert.equal(body.session_id, session.session_id)
  assert.equal(new URL(body.cdp_ws_url).search, new URL(session.cdp_ws_url).search)
  assert.equal((await project.call('POST', '/browsers', { name: 'kept' })).status, 409)
})

test('after a crash of the server dead sessions are ended, incomplete ones removed and unknown machines stopped', async () => {
  const project = await server.project()
  const dead = await project.session({ name: 'dead' })
  const starting = await project.session({ name: 'starting' })
  const ending = await project.session({ name: 'ending' })
  const stray = await project.session({ name: 'stray' })
  await server.crash()
  server.host.agentOf(dead.session_id as SessionId).kill()
  const setState = (id: string, state: 'starting' | 'ending', deleted_at: Date | null) =>
    server.database
      .updateTable('sessions')
      .set({ state, deleted_at })
      .where('id', '=', id as SessionId)
      .execute()
  await setState(starting.session_id, 'starting', null)
  await setState(ending.session_id, 'ending', server.clock.now())
  await server.database
    .deleteFrom('sessions')
    .where('id', '=', stray.session_id as SessionId)
    .execute()

  await server.start()

  assert.deepEqual(await idsOf(project, ''), [])
  assert.deepEqual(new Set(await idsOf(project, '?status=deleted')), new Set([dead.session_id, ending.session_id]))
  for (const { session_id } of [dead, starting, ending, stray]) {
    assert.equal(server.host.has(session_id as SessionId), false)
  }
})

test('after a crash of the server a session is adopted although its agent is slow', async () => {
  const project = await server.project()
  const { session_id } = await project.session()
  await server.crash()
  const agent = server.host.agentOf(session_id as SessionId)
  agent.freeze()

  const start = performance.now()
  await server.start()
  const startMilliseconds = performance.now() - start
  await server.reap()
  const whileSlow = await project.call('GET', `/browsers/${session_id}`)
  agent.thaw()
  agent.setState({ idle_since: server.clock.now().getTime() })

  assert.ok(startMilliseconds < 4_000, `the start took ${startMilliseconds} ms`)
  assert.equal(whileSlow.status, 200)
  await until(async () => {
    const row = server.database
      .selectFrom('sessions')
      .select('idle_since')
      .where('id', '=', session_id as SessionId)
    return (await row.executeTakeFirstOrThrow()).idle_since !== null
  })
})

test('after a crash of the server a session whose agent never answers is ended', async () => {
  const project = await server.project()
  const { session_id } = await project.session()
  await server.crash()
  server.host.agentOf(session_id as SessionId).freeze()

  await server.start(undefined, { readyLimitMilliseconds: 200 })

  await until(async () => (await project.call('GET', `/browsers/${session_id}`)).status === 404)
  await until(async () => !server.host.has(session_id as SessionId))
})

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!(await isTrue())) {
    assert.ok(performance.now() < deadline, 'it does not come true')
    await delay(10)
  }
}

async function idsOf(project: TestProject, query: string): Promise<string[]> {
  const { body } = await project.call<{ session_id: string }[]>('GET', `/browsers${query}`)
  return body.map(({ session_id }) => session_id)
}
