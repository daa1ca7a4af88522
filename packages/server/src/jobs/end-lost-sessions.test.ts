import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { sql } from 'kysely'
import { type TestProject, TestServer } from '../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())
const { lostSessions } = server.services

beforeEach(() => server.database.deleteFrom('servers').execute())

/** Inserts a server that started and was last seen the given number of seconds ago. */
async function seen(id: string, { up, last }: { up: number; last: number }): Promise<void> {
  await sql`insert into servers (id, up_since, seen_at)
    values (${id}, now() - make_interval(secs => ${up}), now() - make_interval(secs => ${last}))`.execute(
    server.database,
  )
}

/** Creates a session of another server. */
async function sessionOf(serverId: string, project: TestProject, state: 'starting' | 'active' | 'ending' = 'active') {
  const { session_id } = await project.session({ name: `one-of-${serverId}-${state}` })
  await server.database
    .updateTable('sessions')
    .set({
      driver_id: serverId,
      state,
      created_at: sql`now() - interval '10 minutes'`,
      ...(state === 'ending' && { deleted_at: sql`now() - interval '5 minutes'` }),
    })
    .where('id', '=', session_id as SessionId)
    .execute()
  return session_id as SessionId
}

function rowOf(id: SessionId) {
  return server.database.selectFrom('sessions').selectAll().where('id', '=', id).executeTakeFirst()
}

test('the sessions of a lost server end at its last heartbeat, and their names become free', async () => {
  const project = await server.project()
  await seen('test', { up: 600, last: 1 })
  await seen('gone', { up: 600, last: 120 })
  const active = await sessionOf('gone', project)
  const ending = await sessionOf('gone', project, 'ending')
  const starting = await sessionOf('gone', project, 'starting')

  await lostSessions.end()

  const [ended, finished] = [await rowOf(active), await rowOf(ending)]
  assert.deepEqual([ended?.state, finished?.state, await rowOf(starting)], ['deleted', 'deleted', undefined])
  assert.ok(Math.abs((ended?.uptime_ms ?? 0) - 480_000) < 5_000, 'from its creation to when its server was last seen')
  assert.ok(Math.abs((finished?.uptime_ms ?? 0) - 300_000) < 5_000, 'to its own end')
  assert.equal((await project.call('GET', `/browsers/${active}`)).status, 404)
  const { body } = await project.call('GET', `/browsers/${active}?include_deleted=true`)
  assert.equal(body.usage_status, 'ready')
  assert.equal((await project.call('POST', '/browsers', { name: 'one-of-gone-active' })).status, 200)
})

for (const [why, others, witness] of [
  ['it was seen a moment ago', { up: 600, last: 40 }, { up: 600, last: 1 }],
  ['the one that looks has only just come', { up: 600, last: 120 }, { up: 60, last: 1 }],
  ['the one that looks was away itself', { up: 600, last: 120 }, { up: 600, last: 45 }],
] as const) {
  test(`a server does not count as gone when ${why}`, async () => {
    const project = await server.project()
    await seen('test', witness)
    await seen('other', others)
    const id = await sessionOf('other', project)

    await lostSessions.end()

    assert.equal((await rowOf(id))?.state, 'active')
    await server.database.deleteFrom('sessions').where('id', '=', id).execute()
  })
}

test('after a database outage, a server must run for a while before it counts others as gone', async () => {
  const project = await server.project()
  await seen('test', { up: 600, last: 300 })
  await seen('other', { up: 600, last: 300 })
  const id = await sessionOf('other', project)

  await server.services.heartbeat.start(2 ** 31 - 1)
  server.services.heartbeat.close()
  await lostSessions.end()

  assert.equal((await rowOf(id))?.state, 'active')
})

test('a server that returns stops the machines of sessions that were ended meanwhile', async () => {
  const project = await server.project()
  const { session_id } = await project.session()
  const id = session_id as SessionId
  await server.database
    .updateTable('sessions')
    .set({ state: 'deleted', deleted_at: new Date(), uptime_ms: 1 })
    .where('id', '=', id)
    .execute()
  const other = await project.session()

  await server.reap()

  assert.ok(!server.host.has(id))
  assert.ok(server.host.has(other.session_id as SessionId))
})

test('a server that has been gone for a week is removed when it has no sessions left', async () => {
  const project = await server.project()
  const week = 7 * 24 * 3600
  // It has just started, so it must not end the sessions of others.
  await seen('test', { up: 1, last: 1 })
  await seen('long-gone', { up: 2 * week, last: week + 60 })
  await seen('with-sessions', { up: 2 * week, last: week + 60 })
  await seen('of-this-week', { up: 2 * week, last: week - 60 })
  const id = await sessionOf('with-sessions', project)

  await lostSessions.end()

  const rows = await server.database.selectFrom('servers').select('id').orderBy('id').execute()
  assert.deepEqual(
    rows.map((row) => row.id),
    ['of-this-week', 'test', 'with-sessions'],
  )
  await server.database.deleteFrom('sessions').where('id', '=', id).execute()
})
