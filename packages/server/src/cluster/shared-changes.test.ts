import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, beforeEach, test } from 'node:test'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { sql } from 'kysely'
import WebSocket from 'ws'
import { SharedServers } from '../testing/shared-servers.ts'

const servers = await SharedServers.open()
after(() => servers.close())
const { first, second } = servers

beforeEach(async () => {
  await sql`update servers set seen_at = now()`.execute(first.database)
  second.clock.advance(10)
})

/** The first server was last seen two minutes ago. The second has run all the time. */
async function loseFirst(): Promise<void> {
  await sql`update servers set up_since = now() - interval '10 minutes',
    seen_at = now() - case when id = 'test' then interval '2 minutes' else interval '0' end`.execute(first.database)
}

function readRow(id: SessionId) {
  return first.database.selectFrom('sessions').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
}

test('an update does not change a session that another server has ended meanwhile', async () => {
  const project = await first.project()
  const { session_id } = await project.session({ headless: true, name: 'overtaken' })
  const id = session_id as SessionId
  const [resizing, resume] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  first.host.agentOf(id).onResize = async () => {
    resizing.resolve()
    await resume.promise
  }

  const update = project.on(second).call('PATCH', `/browsers/${id}`, { viewport: { width: 640, height: 480 } })
  await resizing.promise
  await loseFirst()
  await second.services.lostSessions.end()
  resume.resolve()
  const { status } = await update

  const { state, name, viewport } = await readRow(id)
  assert.deepEqual([status, state, name], [404, 'deleted', 'overtaken'])
  assert.notEqual(viewport.width, 640)
  assert.equal((await project.on(second).call('POST', '/browsers', { headless: true, name: 'overtaken' })).status, 200)
  await first.reap()
  assert.ok(!first.host.has(id), 'its server ends the machine when it sees that the session has ended')
})

test('a dashboard receives changes of sessions on another server', async () => {
  const project = await first.project()
  const leaving = new AbortController()
  const stream = await fetch(`${second.url}/dashboard/changes`, {
    headers: { authorization: `Bearer ${project.key}` },
    signal: leaving.signal,
  })
  const told = Promise.withResolvers<string>()
  const reading = (async () => {
    const lines = stream.body?.pipeThrough(new TextDecoderStream()) as unknown as AsyncIterable<string>
    for await (const text of lines) {
      const id = /"sessions":\["([^"]+)"/.exec(text)?.[1]
      if (id !== undefined) told.resolve(id)
    }
  })()

  const session = await project.session()

  assert.equal(await told.promise, session.session_id)
  leaving.abort()
  await reading.catch(() => {})
})

test('a delete does not wait for a hanging update, on either server', async () => {
  const project = await first.project()
  const { session_id: id } = await project.session()
  const resizing = Promise.withResolvers<void>()
  const hanging = Promise.withResolvers<void>()
  first.host.agentOf(id as SessionId).onResize = () => {
    resizing.resolve()
    return hanging.promise
  }
  const update = project.call('PATCH', `/browsers/${id}`, { viewport: { width: 640, height: 480 } })
  await resizing.promise

  const deleting = performance.now()
  const deleted = await project.on(second).call('DELETE', `/browsers/${id}`)
  const milliseconds = performance.now() - deleting
  hanging.resolve()

  assert.equal(deleted.status, 204)
  assert.ok(milliseconds < 10_000, `the delete took ${milliseconds} ms`)
  assert.equal((await update).status, 404)
})

test('requests to a silent server are aborted when it counts as gone', {
  timeout: 60_000,
}, async () => {
  const project = await first.project()
  const session = await project.session()
  first.host.agentOf(session.session_id as SessionId).operate = () => {} // It never responds.
  const { port, pathname, search } = new URL(session.cdp_ws_url)
  const waiting = project.on(second).call<{ code: string }>('POST', `/browsers/${session.session_id}/process/exec`, {})
  const socket = new WebSocket(`ws://127.0.0.1:${port.replace(`${first.port}`, `${second.port}`)}${pathname}${search}`)
  await once(socket, 'open')

  await loseFirst()
  second.clock.advance(10)

  const [{ status, body }] = await Promise.all([waiting, once(socket, 'close')])
  assert.deepEqual([status, body.code], [502, 'operation_interrupted'])
})

test('a server changes neither row nor machine of a session of another server', async () => {
  const project = await first.project()
  const { session_id } = await project.session({ headless: true, name: 'not-here' })
  const id = session_id as SessionId
  const { updater, sessions } = second.services

  await assert.rejects(updater.update(project.id, id, { name: 'changed' }), { code: 'session_unreachable' })
  await assert.rejects(sessions.delete(project.id, id), { code: 'session_unreachable' })
  await second.reap()

  const { state, name } = await readRow(id)
  assert.deepEqual([state, name, first.host.has(id)], ['active', 'not-here', true])
})
