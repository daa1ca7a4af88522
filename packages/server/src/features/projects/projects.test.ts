import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { ProjectId } from '@berth/contract/common/ids.ts'
import type { Project, ProjectLimits } from '@berth/contract/projects/project.ts'
import { newApiKey } from '../../access/secrets.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

interface Failure {
  readonly code: string
  readonly message: string
}

const create = (owner: TestProject, name: string) => owner.call<Project>('POST', '/org/projects', { name })

/** Creates a key that is restricted to this project. */
async function keyOf(owner: TestProject, { id }: { readonly id: string }): Promise<string> {
  const key = newApiKey()
  await owner.addKey(key, id as ProjectId)
  return key
}

test('a project is created, found by id and by name, renamed, archived, reactivated and deleted', async () => {
  const owner = await server.project()

  const { status, body: created } = await create(owner, '  Zweites Projekt ü ')
  assert.deepEqual([status, created.name, created.status], [201, 'Zweites Projekt ü', 'active'])
  assert.match(created.id, /^prj[a-z0-9]{21}$/)
  const path = `/org/projects/${created.id}`
  assert.deepEqual((await owner.call('GET', path)).body, created)
  assert.deepEqual((await owner.call('GET', `/org/projects/${encodeURIComponent(created.name)}`)).body, created)

  server.clock.advance(3)
  const renamed = await owner.call<Project>('PATCH', path, { name: 'two' })
  assert.deepEqual([renamed.status, renamed.body.name], [200, 'two'])
  assert.equal(Date.parse(renamed.body.updated_at) - Date.parse(created.updated_at), 3_000)

  const headers = { 'X-Kernel-Project': 'two' }
  assert.equal((await owner.call('GET', '/browsers', undefined, { headers })).status, 200)
  assert.equal((await owner.call<Project>('PATCH', path, { status: 'archived' })).body.status, 'archived')
  assert.equal((await owner.call('GET', '/browsers', undefined, { headers })).status, 404)
  assert.equal((await owner.call<Project>('PATCH', '/org/projects/two', { status: 'active' })).body.status, 'active')
  assert.equal((await owner.call('GET', '/browsers', undefined, { headers })).status, 200)

  assert.equal((await owner.call('DELETE', '/org/projects/two')).status, 204)
  for (const method of ['GET', 'DELETE', 'PATCH'] as const) {
    const gone = await owner.call<Failure>(method, path, method === 'PATCH' ? {} : undefined)
    assert.deepEqual([gone.status, gone.body.code], [404, 'project_not_found'])
  }
})

test('the older paths behave identically', async () => {
  const owner = await server.project()
  server.clock.advance(1)

  const { body: made } = await owner.call<Project>('POST', '/projects', { name: 'old way' })
  const path = `/projects/${made.id}`
  const renamed = await owner.call<Project>('PATCH', `/projects/${made.id}`, { name: 'older way' })
  const limits = await owner.call<ProjectLimits>('PATCH', `/projects/${made.id}/limits`, { max_concurrent_sessions: 2 })

  assert.equal(renamed.body.name, 'older way')
  assert.deepEqual((await owner.call('GET', `/projects/${made.id}`)).body, renamed.body)
  assert.equal((await owner.call<Project[]>('GET', '/projects?limit=1')).body[0]?.id, made.id)
  assert.deepEqual((await owner.call('GET', `/projects/${made.id}/limits`)).body, limits.body)
  assert.equal((await owner.call('DELETE', `/projects/${made.id}`)).status, 204)
  assert.equal((await owner.call('GET', path)).status, 404)
})

test('an invalid name is a 400 that names the field', async () => {
  const owner = await server.project()
  const two = (await create(owner, 'two')).body

  for (const name of ['', ' ', 'a/b', '50%', '..', 'line\nbreak', '😀'.repeat(256), 5, null]) {
    for (const [method, path] of [
      ['POST', '/org/projects'],
      ['PATCH', `/org/projects/${two.id}`],
    ] as const) {
      const { status, body } = await owner.call<Failure>(method, path, { name })
      assert.deepEqual([status, body.code], [400, 'invalid_input'], JSON.stringify(name))
      assert.match(body.message, /^name: must /)
    }
  }
  assert.equal((await create(owner, '😀'.repeat(255))).status, 201, 'characters are counted, not bytes')
})

test('of twenty simultaneous creates with one name one succeeds, and the others are not retryable', async () => {
  const owner = await server.project()

  const answers = await Promise.all(Array.from({ length: 20 }, () => create(owner, 'taken')))

  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, ...Array.from({ length: 19 }, () => 409)])
  const refused = answers.find(({ status }) => status === 409)
  assert.equal(refused?.headers.get('x-should-retry'), 'false')
  assert.equal((await owner.call<Failure>('PATCH', '/org/projects/taken', { name: 'Default' })).status, 409)
})

test('a list is paged and filtered', async () => {
  const owner = await server.project()
  for (const name of ['Crème Brûlée', 'creme', 'other']) {
    server.clock.advance(1)
    await create(owner, name)
  }
  const names = async (query: string) =>
    (await owner.call<Project[]>('GET', `/org/projects?${query}`)).body.map(({ name }) => name)

  assert.deepEqual(await names(''), ['other', 'creme', 'Crème Brûlée', 'Default'])
  assert.deepEqual(await names('query=REME'), ['creme'])
  assert.deepEqual(await names('name=CREME%20BRULEE'), ['Crème Brûlée'])
  assert.deepEqual(await names('name=Cr%C3%A8me'), ['creme'])
  const page = await owner.call<Project[]>('GET', '/org/projects?limit=3')
  assert.deepEqual(
    ['x-limit', 'x-offset', 'x-has-more', 'x-next-offset'].map((name) => page.headers.get(name)),
    ['3', '0', 'true', '3'],
  )
})

test('one of the last two active projects stays, even with concurrent archives and deletes', async () => {
  for (const round of [0, 1, 2]) {
    const owner = await server.project()
    const { body: second } = await create(owner, `second ${round}`)

    const answers = await Promise.all([
      owner.call<Failure>('DELETE', '/org/projects/Default'),
      owner.call<Failure>('PATCH', `/org/projects/${second.id}`, { status: 'archived' }),
      owner.call<Failure>('DELETE', `/org/projects/${second.id}`),
      owner.call<Failure>('PATCH', '/org/projects/Default', { status: 'archived' }),
    ])

    const { body: left } = await owner.call<Project[]>('GET', '/org/projects')
    assert.equal(left.filter(({ status }) => status === 'active').length, 1)
    const refused = answers.filter(({ status }) => status === 409)
    assert.ok(refused.every(({ body }) => body.code === 'last_active_project'))
    assert.ok(refused.every(({ headers }) => headers.get('x-should-retry') === 'false'))
  }
})

test('only an empty project is deleted', async () => {
  const owner = await server.project()
  const { body: project } = await create(owner, 'full')
  const init = { headers: { 'X-Kernel-Project-Id': project.id } }
  const remove = () => owner.call<Failure>('DELETE', `/org/projects/${project.id}`)
  const made: [kind: string, create: () => Promise<string>][] = [
    ['sessions', async () => `/browsers/${(await owner.call('POST', '/browsers', {}, init)).body.session_id}`],
    ['profiles', async () => `/profiles/${(await owner.call<Project>('POST', '/profiles', {}, init)).body.id}`],
    [
      'proxies',
      async () => {
        const proxy = { type: 'custom', config: { host: 'proxy.test', port: 80 } }
        return `/proxies/${(await owner.call<Project>('POST', '/proxies', proxy, init)).body.id}`
      },
    ],
    [
      'browser pools',
      async () => `/browser_pools/${(await owner.call<Project>('POST', '/browser_pools', { size: 1 }, init)).body.id}`,
    ],
    [
      'credentials',
      async () => {
        const credential = { name: 'c', domain: 'example.com', values: {} }
        return `/credentials/${(await owner.call<Project>('POST', '/credentials', credential, init)).body.id}`
      },
    ],
    ['vaults', async () => `/vaults/${(await owner.call<Project>('POST', '/vaults', { name: 'v' }, init)).body.id}`],
    [
      'api keys',
      async () => {
        const key = { name: 'its own', project_id: project.id }
        return `/org/api_keys/${(await owner.call<Project>('POST', '/org/api_keys', key)).body.id}`
      },
    ],
  ]
  for (const [kind, make] of made) {
    const path = await make()

    const refused = await remove()
    assert.deepEqual([refused.status, refused.body.code], [409, 'project_not_empty'], kind)
    assert.match(refused.body.message, new RegExp(kind))
    assert.equal((await owner.call('DELETE', path, undefined, init)).status, 204)
  }

  assert.equal((await remove()).status, 204)
})

test('rows of every table prevent the delete of their project, except rows that expire', async () => {
  const { sql } = await import('kysely')
  const { rows } = await sql<{ table: string }>`
    select distinct c.table_name as table from information_schema.columns c
    where c.table_schema = 'public' and c.column_name = 'project_id' and not exists (
      select from pg_constraint r where r.contype = 'f' and r.conrelid = c.table_name::regclass
        and r.confrelid = 'projects'::regclass and r.confdeltype = 'a')`.execute(server.database)

  const expiring = ['create_hours', 'page_contents', 'searches']
  assert.deepEqual(rows.map(({ table }) => table).toSorted(), expiring)
})

test('a create during the delete of its project either fails or prevents the delete', async () => {
  for (let round = 0; round < 5; round += 1) {
    const owner = await server.project()
    const { body: project } = await create(owner, 'racing')
    const init = { headers: { 'X-Kernel-Project-Id': project.id } }

    const [made, deleted] = await Promise.all([
      owner.call<Failure>('POST', '/profiles', { name: 'late' }, init),
      owner.call<Failure>('DELETE', `/org/projects/${project.id}`),
    ])

    const outcome = `${made.status} ${deleted.status}`
    assert.ok(['201 409', '404 204'].includes(outcome), outcome)
  }
})

test('limits are set, removed and kept', async () => {
  const owner = await server.project()
  const path = '/org/projects/Default/limits'
  const none = { max_concurrent_sessions: null, max_concurrent_invocations: null, max_pooled_sessions: null }

  assert.deepEqual((await owner.call('GET', path)).body, none)
  const set = await owner.call('PATCH', path, { max_concurrent_sessions: 5, max_concurrent_invocations: 7 })
  assert.deepEqual(set.body, { ...none, max_concurrent_sessions: 5, max_concurrent_invocations: 7 })
  const partly = await owner.call('PATCH', path, { max_concurrent_sessions: null, max_concurrent_invocations: 0 })
  assert.deepEqual(partly.body, { ...none, max_concurrent_sessions: 5 })
  for (const body of [{ max_pooled_sessions: 1 }, { max_concurrent_sessions: -1 }, { max_concurrent_sessions: 1.5 }]) {
    const { status, body: failure } = await owner.call<Failure>('PATCH', path, body)
    assert.deepEqual([status, failure.message.split(':')[0]], [400, Object.keys(body)[0]])
  }
})

test('a key of one project sees only that project, and may only rename it', async () => {
  const owner = await server.project()
  const { body: own } = await create(owner, 'own')
  const key = await keyOf(owner, own)
  const call = <Body = Failure>(method: string, path: string, body?: unknown) =>
    owner.call<Body>(method, path, body, { key })

  assert.deepEqual((await call<Project[]>('GET', '/org/projects')).body, [own])
  assert.equal((await call('GET', '/org/projects/own')).status, 200)
  assert.equal((await call('GET', '/org/projects/own/limits')).status, 200)
  assert.equal((await call<Project>('PATCH', '/org/projects/own', { name: 'renamed' })).body.name, 'renamed')
  for (const [method, path, body, status] of [
    ['GET', '/org/projects/Default', undefined, 404],
    ['PATCH', '/org/projects/Default', { name: 'mine' }, 404],
    ['PATCH', '/org/projects/renamed', { status: 'archived' }, 403],
    ['POST', '/org/projects', { name: 'new' }, 403],
    ['DELETE', '/org/projects/renamed', undefined, 403],
    ['PATCH', '/org/projects/renamed/limits', { max_concurrent_sessions: 100 }, 403],
  ] as const) {
    assert.equal((await call(method, path, body)).status, status, `${method} ${path}`)
  }
})

test('a key of an archived project is not valid until the project is active again', async () => {
  const owner = await server.project()
  const { body: own } = await create(owner, 'own')
  const key = await keyOf(owner, own)
  const read = async () => (await owner.call<Failure>('GET', '/browsers', undefined, { key })).status
  assert.equal(await read(), 200)

  await owner.call('PATCH', '/org/projects/own', { status: 'archived' })
  assert.equal(await read(), 404)
  await owner.call('PATCH', '/org/projects/own', { status: 'active' })
  assert.equal(await read(), 200)
})

test('an organization continues without its first project, and its requests have to name another', async () => {
  const owner = await server.project()
  await create(owner, 'other')
  assert.equal((await owner.call('DELETE', '/org/projects/Default')).status, 204)

  const without = await owner.call<Failure>('GET', '/browsers')
  const named = await owner.call('GET', '/browsers', undefined, { headers: { 'X-Kernel-Project': 'other' } })

  assert.deepEqual([without.status, without.body.code, named.status], [404, 'project_not_found', 200])
  assert.equal((await owner.call('GET', '/org/projects')).status, 200)
})

test('with projects switched off, their operations report that, and all others work', async () => {
  const without = await TestServer.open({ hasProjects: false })
  try {
    const owner = await without.project()

    for (const [method, path, body] of [
      ['POST', '/org/projects', { name: 'new' }],
      ['GET', '/org/projects'],
      ['GET', '/org/projects/Default'],
      ['PATCH', '/org/projects/Default', { name: 'x' }],
      ['DELETE', '/org/projects/Default'],
      ['GET', '/org/projects/Default/limits'],
      ['PATCH', '/org/projects/Default/limits', {}],
      ['GET', '/projects'],
    ] as const) {
      const { status, body: failure } = await owner.call<Failure>(method, path, body)
      assert.deepEqual([status, failure.code], [404, 'projects_disabled'], `${method} ${path}`)
    }
    assert.equal((await owner.call('GET', '/browsers')).status, 200)
  } finally {
    await without.close()
  }
})
