import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { ProjectId } from '@berth/contract/common/ids.ts'
import { ListName, type ProjectChange } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import { eventDataOf } from '@berth/runtime/http/event-stream.ts'
import { sql } from 'kysely'
import { newApiKey } from '../../access/secrets.ts'
import type { TestProject } from '../../testing/server-test.ts'
import { SharedServers } from '../../testing/shared-servers.ts'

const servers = await SharedServers.open()
after(() => servers.close())
const { first, second } = servers

/** Collects the lists and sessions in the events of a stream. */
class Follower {
  readonly lists: ListName[] = []
  readonly sessions: string[] = []
  readonly #leaving = new AbortController()

  static async start(project: TestProject, url: string, key = project.key): Promise<Follower> {
    const follower = new Follower()
    const stream = await fetch(`${url}/dashboard/changes`, {
      headers: { authorization: `Bearer ${key}` },
      signal: follower.#leaving.signal,
    })
    assert.equal(stream.status, 200)
    const lines = stream.body?.pipeThrough(new TextDecoderStream()) as unknown as AsyncIterable<string>
    const read = async () => {
      for await (const text of lines) {
        for (const line of text.split('\n')) {
          const data = eventDataOf(line)
          if (data === undefined) continue
          const { lists, sessions } = JSON.parse(data) as ProjectChange
          follower.lists.push(...lists)
          follower.sessions.push(...sessions)
        }
      }
    }
    read().catch(() => {}) // The reader has left.
    return follower
  }

  async isTold(name: string): Promise<void> {
    const end = Date.now() + 60_000
    const told = () => [...this.lists, ...this.sessions]
    while (!told().includes(name)) {
      assert.ok(Date.now() < end, `${name} was not told, but ${told().join(', ')}`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  leave(): void {
    this.#leaving.abort()
  }
}

const webhook = { url: 'https://hooks.test/berth' }
const changes: readonly (readonly [list: ListName, method: string, path: string, body?: object])[] = [
  ['profiles', 'POST', '/profiles', { name: 'kept' }],
  ['profiles', 'PATCH', '/profiles/kept', { name: 'kept-2' }],
  ['profiles', 'DELETE', '/profiles/kept-2'],
  ['proxies', 'POST', '/proxies', { type: 'custom', name: 'exit', config: { host: 'proxy.test', port: 3128 } }],
  ['pools', 'POST', '/browser_pools', { name: 'ready', size: 1 }],
  ['credentials', 'POST', '/credentials', { name: 'login', domain: 'shop.test', values: { username: 'a' } }],
  ['connections', 'POST', '/auth/connections', { domain: 'shop.test', profile_name: 'buyer' }],
  ['vaults', 'POST', '/vaults', { name: 'shop' }],
  [
    'vault-items',
    'PUT',
    '/vaults/shop/items/pin',
    { type: 'credential', spec: { provider: 'kernel', fields: [{ name: 'pin', type: 'password', value: '1' }] } },
  ],
  ['webhooks', 'POST', '/webhooks', webhook],
  ['projects', 'POST', '/org/projects', { name: 'another' }],
  ['api-keys', 'POST', '/org/api_keys', { name: 'another' }],
  ['otlp', 'POST', '/telemetry/destinations', { name: 'collector', endpoint: 'https://otlp.test' }],
]

test('followers of a list are notified of its changes on any server, and others are not', async () => {
  const [project, other] = [await first.project(), await first.project()]
  const restricted = newApiKey()
  await project.addKey(restricted, project.id as ProjectId)
  const stranger = await Follower.start(other, second.url)
  await other.call('POST', '/profiles', { name: 'own' })
  await Promise.all([stranger.isTold('profiles'), stranger.isTold('audit')]) // All earlier changes have arrived then.
  stranger.lists.length = 0
  for (const [list, method, path, body] of changes) {
    const followers = await Promise.all([Follower.start(project, first.url), Follower.start(project, second.url)])

    const { status, body: reply } = await project.call(method, path, body)
    assert.ok(status < 300, `${method} ${path}: ${JSON.stringify(reply)}`)

    await Promise.all(followers.map((follower) => follower.isTold(list)))
    for (const follower of followers) follower.leave()
  }

  const follower = await Follower.start(project, second.url)
  const ofProject = await Follower.start(project, second.url, restricted)
  await project.call('POST', '/telemetry/destinations', { name: 'collector-2', endpoint: 'https://otlp.test' })
  await Promise.all([follower.isTold('otlp'), follower.isTold('audit')])
  await project.call('POST', '/profiles', { name: 'last' })
  await ofProject.isTold('profiles')
  assert.deepEqual(new Set(ofProject.lists), new Set(['profiles']), 'a key of a project hears of its project alone')
  assert.deepEqual(stranger.lists, [])
  for (const each of [follower, ofProject, stranger]) each.leave()
})

test('changes that a list does not show are not reported', async () => {
  const project = await first.project()
  const { body: pool } = await project.call<{ id: string }>('POST', '/browser_pools', { name: 'quiet', size: 1 })
  const follower = await Follower.start(project, first.url)
  await project.call('POST', '/profiles', { name: 'seen' })
  await follower.isTold('profiles') // All earlier changes have arrived then, too.
  follower.lists.length = 0

  await sql`update browser_pools set next_build_at = now() where id = ${pool.id}`.execute(first.database)
  await sql`update browser_pools set name = name, version = version where id = ${pool.id}`.execute(first.database)
  await sql`update projects set name = 'told' where id = ${project.id}`.execute(first.database)
  await follower.isTold('projects')

  assert.ok(!follower.lists.includes('pools'))
  follower.leave()
})

test('recordings and downloads are changes of their session', async () => {
  const project = await first.project()
  const { session_id: id } = await project.session()
  const writes = [
    sql`insert into replays (id, project_id, session_id, driver_id, head, started_at)
      values ('rpl_told', ${project.id}, ${id}, 'test', '', now())`,
    sql`update replays set finished_at = now(), end_reason = 'stopped', expires_at = now() where id = 'rpl_told'`,
    sql`insert into downloads (session_id, project_id, name, size_bytes, downloaded_at, expires_at)
      values (${id}, ${project.id}, 'a.txt', 1, now(), now())`,
  ]
  for (const write of writes) {
    const follower = await Follower.start(project, second.url)

    await write.execute(first.database)

    await follower.isTold(id)
    follower.leave()
  }
})

test('an unknown message causes a reload of the lists, and no failure', async () => {
  const project = await first.project()
  const follower = await Follower.start(project, first.url)

  await sql`select pg_notify('berth_changes', 'no JSON')`.execute(first.database)
  await sql`select pg_notify('berth_changes', '{"list":"of a newer version"}')`.execute(first.database)
  await project.call('POST', '/profiles', { name: 'after' })

  await follower.isTold('profiles')
  follower.leave()
})

test('each list has a trigger', async () => {
  const { rows } = await sql<{ arguments: Buffer }>`
    select distinct tgargs as arguments from pg_trigger
    where tgfoid = 'announce_list_change'::regproc`.execute(first.database)
  const told = rows.map(({ arguments: bytes }) => bytes.toString().split('\0')[0])

  // Apps change with their deployments. The audit log has a separate trigger.
  assert.deepEqual(new Set([...told, 'apps', 'audit']), new Set(ListName.options))
})
