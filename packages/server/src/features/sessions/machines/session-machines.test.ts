import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { TestServer } from '../../../testing/server-test.ts'
import type { Session } from '../records/session.ts'

const server = await TestServer.open()
after(() => server.close())

test('a session has a machine with its own id, and egress knows its session', async () => {
  const project = await server.project()

  const { session_id } = await project.session()

  const { machine_id } = await server.row(session_id)
  assert.match(machine_id, /^mch[a-z0-9]{21}$/)
  assert.ok(server.host.machines.has(machine_id))
  assert.equal(server.egress.routes.get(machine_id)?.session_id, session_id)
  await project.call('DELETE', `/browsers/${session_id}`)
  assert.ok(!server.host.machines.has(machine_id))
  assert.ok(!server.egress.routes.has(machine_id))
})

test('of two sessions with one machine, the database accepts one', async () => {
  const project = await server.project()
  const [one, other] = [await project.session(), await project.session()]
  const { machine_id } = await server.row(one.session_id)

  const second = server.database
    .updateTable('sessions')
    .set({ machine_id })
    .where('id', '=', other.session_id as SessionId)
    .execute()

  await assert.rejects(second, /sessions_machine_id/)
})

async function setState({ id }: Session, state: Session['state']): Promise<void> {
  await server.database.updateTable('sessions').set({ state }).where('id', '=', id).execute()
}

async function deleteRow({ id }: Session): Promise<void> {
  await server.database.deleteFrom('sessions').where('id', '=', id).execute()
}

async function loseMachine({ machine_id }: Session): Promise<void> {
  const machine = server.host.machines.get(machine_id)
  machine?.agent.kill()
  await machine?.ended
  server.host.machines.delete(machine_id)
}

const leftovers: Readonly<Record<string, (session: Session) => Promise<unknown>>> = {
  'after it had allocated a session': async (session) => {
    await loseMachine(session)
    server.egress.routes.delete(session.machine_id)
    await setState(session, 'starting')
  },
  'while it provisioned a session, before egress knew': async (session) => {
    server.egress.routes.delete(session.machine_id)
    await setState(session, 'starting')
  },
  'after it had provisioned a session': (session) => setState(session, 'starting'),
  'after a create had failed, before the machine was removed': deleteRow,
  'after the machine was removed, before egress knew': async (session) => {
    await deleteRow(session)
    await loseMachine(session)
  },
}
for (const [moment, leave] of Object.entries(leftovers)) {
  test(`everything of a server that was killed ${moment} is removed by the next one`, async () => {
    const project = await server.project()
    const row = await server.row((await project.session({ name: 'left' })).session_id)
    await server.crash()
    await leave(row)

    await server.start()

    assert.ok(!server.host.machines.has(row.machine_id))
    assert.ok(!server.egress.routes.has(row.machine_id))
    assert.equal((await project.call('GET', '/browsers/left')).status, 404)
    assert.equal((await project.call('POST', '/browsers', { name: 'left' })).status, 200)
  })
}

test('a session of a killed server is adopted with its machine, also with a new egress process', async () => {
  const project = await server.project()
  const { session_id } = await project.session()
  const { machine_id } = await server.row(session_id)
  await server.crash()
  server.egress.routes.clear()

  await server.start()

  assert.equal(server.services.machines.get(session_id as SessionId).id, machine_id)
  assert.equal(server.egress.routes.get(machine_id)?.session_id, session_id)
})

test('a session whose route cannot be closed stops its machine, and ends later', async () => {
  const project = await server.project()
  const { session_id } = await project.session()
  server.egress.onClose = async () => {
    throw new Error('egress is away')
  }

  const refused = await project.call('DELETE', `/browsers/${session_id}`)

  assert.equal(refused.status, 500)
  assert.equal(server.host.has(session_id as SessionId), false)
  assert.equal(await usageOf(session_id), 'pending')
  server.egress.onClose = async () => {}
  await server.reap()
  assert.equal(await usageOf(session_id), 'ready')

  async function usageOf(id: string) {
    return (await project.call<Browser>('GET', `/browsers/${id}?include_deleted=true`)).body.usage_status
  }
})

test('sessions start and end while egress hangs at the end of another session', async () => {
  const project = await server.project()
  const [hung, other] = [await project.session(), await project.session()]
  const { machine_id } = await server.row(hung.session_id)
  const hanging = Promise.withResolvers<void>()
  server.egress.onClose = (id) => (id === machine_id ? hanging.promise : Promise.resolve())
  const ending = project.call('DELETE', `/browsers/${hung.session_id}`)

  assert.equal((await project.call('POST', '/browsers', {})).status, 200)
  assert.equal((await project.call('DELETE', `/browsers/${other.session_id}`)).status, 204)

  server.egress.onClose = async () => {}
  hanging.resolve()
  assert.equal((await ending).status, 204)
})

test('a session fails to start when egress rejects its route, and leaves nothing', async () => {
  const project = await server.project()
  const before = await server.host.remains()
  server.egress.onOpen = async () => {
    throw new Error('egress is away')
  }

  const { status, body } = await project.call<{ code: string }>('POST', '/browsers', { name: 'cut-off' })

  server.egress.onOpen = async () => {}
  assert.deepEqual([status, body.code], [500, 'session_start_failed'])
  assert.deepEqual(await server.host.remains(), before)
  assert.equal((await project.call('POST', '/browsers', { name: 'cut-off' })).status, 200)
})
