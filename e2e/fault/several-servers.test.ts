import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Berth } from '../testing/berth.ts'
import { CdpClient } from '../testing/cdp.ts'
import { SharedBerths } from '../testing/shared-berths.ts'
import { isDeep } from './testing/deep.ts'
import { HostView } from './testing/holdings.ts'
import { call, canBeUsed, createSession, deleteSession, isActive, type SessionRecord } from './testing/sessions.ts'
import { until } from './testing/until.ts'

const shared = await SharedBerths.open(Berth.startOne)
const servers = [await shared.start(), await shared.start()]
after(() => shared[Symbol.asyncDispose]())

interface Failure {
  readonly code: string
}

/** The schedule runs it once a minute, which only the deep form waits for. */
const runLostSessionsNow = `
  insert into jobs.job (name, data, policy, singleton_key) values ('end-lost-sessions', '{}', 'stately', '')
  on conflict do nothing`

/** The session with the addresses of the given server. */
function at(server: Berth, session: SessionRecord): SessionRecord {
  const url = new URL(session.cdp_ws_url)
  url.port = new URL(server.url).port
  return { ...session, cdp_ws_url: url.href }
}

for (const [killed, other] of [
  [0, 1],
  [1, 0],
] as const) {
  const skip = killed === 1 && !isDeep && 'only with ./berth test --deep'
  test(`when server ${killed + 1} is killed, the other continues, and its sessions continue after its next start`, {
    skip,
  }, async () => {
    const [dead, living] = [servers[killed] as Berth, servers[other] as Berth]
    const view = await HostView.of(dead.dataFolder, { hasOwnDatabase: false })
    const before = await view.holdings()
    const lost = await createSession(dead, { name: 'lost' })
    const kept = await createSession(living, { name: 'kept' })
    const client = await CdpClient.open(kept.cdp_ws_url)
    const page = await client.openPage()

    await dead.signal('SIGKILL')
    const answers = await Promise.all([
      call<Failure>(living, 'GET', '/browsers/lost/fs/file_info?path=/tmp'),
      call<Failure>(living, 'PATCH', '/browsers/lost', { name: 'changed' }),
      call<Failure>(living, 'DELETE', '/browsers/lost'),
    ])
    const [isListed, sum] = [await isActive(living, 'lost'), await client.evaluate(page, '20 + 22')]
    const again = await shared.start({}, dead)
    servers[killed] = again

    assert.deepEqual(
      answers.map(({ status, body }) => [status, body.code]),
      Array(3).fill([502, 'session_unreachable']),
    )
    assert.deepEqual([isListed, sum], [true, 42])
    assert.ok(await canBeUsed(at(living, lost)), 'it is taken up, and reached through the other server')
    assert.equal(await deleteSession(living, 'lost'), 204)
    assert.equal(await deleteSession(again, 'kept'), 204)
    assert.deepEqual(await view.findLeft(before, 60), [])
  })
}

test('sessions of a lost server end at the time it was last seen, and it cleans up when it returns', async () => {
  const [dead, living] = servers as [Berth, Berth]
  const view = await HostView.of(dead.dataFolder, { hasOwnDatabase: false })
  const before = await view.holdings()
  const lost = await createSession(dead, { name: 'lost' })
  const port = new URL(dead.url).port
  const { rows } = await shared.storage.database.query('select id from servers where address like $1', [`%:${port}`])
  const [{ id }] = rows

  await dead.signal('SIGKILL')
  // Pretends that two minutes have passed while the other server was running.
  await shared.storage.database.query(
    `update servers set up_since = up_since - interval '10 minutes',
      seen_at = seen_at - case when id = $1 then interval '2 minutes' else interval '0' end`,
    [id],
  )
  if (!isDeep) await shared.storage.database.query(runLostSessionsNow)
  await until('the end of its session', async () => !(await isActive(living, lost.session_id)), { limitSeconds: 150 })
  const ended = await call<{ usage_status: string }>(living, 'GET', `/browsers/${lost.session_id}?include_deleted=true`)
  const next = await createSession(living, { name: 'lost' })
  const machines = (await view.processes()).machines.length
  servers[0] = await shared.start({}, dead)

  assert.equal(ended.body.usage_status, 'ready')
  assert.ok(machines > 0, 'nobody else can end its machine')
  assert.deepEqual(await view.findLeft(before, 60), [])
  assert.ok(await canBeUsed(next))
  assert.equal(await deleteSession(servers[0] as Berth, 'lost'), 204)
})
