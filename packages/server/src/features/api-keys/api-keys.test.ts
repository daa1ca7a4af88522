import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { ApiKey, CreatedApiKey } from '@berth/contract/api-keys/api-key.ts'
import type { Project } from '@berth/contract/projects/project.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

const day = 24 * 60 * 60

interface Failure {
  readonly code: string
  readonly message: string
}

const create = async (owner: TestProject, body: object = { name: 'a key' }): Promise<CreatedApiKey> => {
  const answer = await owner.call<CreatedApiKey>('POST', '/org/api_keys', body)
  assert.equal(answer.status, 201, JSON.stringify(answer.body))
  return answer.body
}

const statusWith = async (owner: TestProject, key: string) =>
  (await owner.call('GET', '/browsers', undefined, { key })).status

test('a key is shown once, is masked from then on, renamed and deleted', async () => {
  const owner = await server.project()

  const { key, ...record } = await create(owner, { name: ' First ' })
  const read = async () => (await owner.call<ApiKey>('GET', `/org/api_keys/${record.id}`)).body
  assert.equal(await statusWith(owner, key), 200)
  assert.deepEqual(await read(), record)
  assert.equal(record.masked_key, `${key.slice(0, 7)}...${key.slice(-4)}`)
  assert.deepEqual(
    [record.name, record.expires_at, record.deleted_at, record.project_id, record.project_name],
    ['First', null, null, null, null],
  )
  const makers = await owner.call<ApiKey[]>('GET', '/org/api_keys?name=test')
  assert.deepEqual(record.created_by, { id: makers.body[0]?.id, email: '', name: 'test' })

  assert.equal(
    (await owner.call<ApiKey>('PATCH', `/org/api_keys/${record.id}`, { name: 'Second' })).body.name,
    'Second',
  )
  assert.equal((await owner.call('DELETE', `/org/api_keys/${record.id}`)).status, 204)
  assert.equal(await statusWith(owner, key), 401, 'it is refused at once')
  for (const [method, body] of [['GET'], ['DELETE'], ['PATCH', { name: 'x' }], ['POST', {}]] as const) {
    const path = `/org/api_keys/${record.id}${method === 'POST' ? '/rotate' : ''}`
    const gone = await owner.call<Failure>(method, path, body)
    assert.deepEqual([gone.status, gone.body.code], [404, 'api_key_not_found'], method)
  }
  const deleted = await owner.call<ApiKey>('GET', `/org/api_keys/${record.id}?include_deleted=true`)
  assert.deepEqual([deleted.status, deleted.body.deleted_at !== null], [200, true])
})

test('only the response that creates a key contains it', async () => {
  const owner = await server.project()
  const { key, id } = await create(owner)

  const answers = [
    await owner.call('GET', '/org/api_keys?status=all'),
    await owner.call('GET', `/org/api_keys/${id}`),
    await owner.call('PATCH', `/org/api_keys/${id}`, { name: key.slice(3, 20) }),
    await owner.call('GET', `/org/api_keys/${key}`),
  ]

  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 404],
  )
  for (const { body } of answers) assert.ok(!JSON.stringify(body).includes(key))
})

test('a key expires after its days, or at the given time', async () => {
  const owner = await server.project()
  const at = (seconds: number) => new Date(server.clock.now().getTime() + seconds * 1000).toISOString()
  const days = await create(owner, { name: 'days', days_to_expire: 2 })
  const time = await create(owner, { name: 'time', expires_at: at(3600) })
  const never = await create(owner, { name: 'never', days_to_expire: null, expires_at: null })
  assert.deepEqual([days.expires_at, time.expires_at, never.expires_at], [at(2 * day), at(3600), null])

  server.clock.advance(3599)
  assert.equal(await statusWith(owner, time.key), 200)
  server.clock.advance(1)
  assert.equal(await statusWith(owner, time.key), 401, 'also where it was known a moment ago')
  server.clock.advance(2 * day)
  assert.deepEqual([await statusWith(owner, days.key), await statusWith(owner, never.key)], [401, 200])
  const { body: listed } = await owner.call<ApiKey[]>('GET', '/org/api_keys?name=days')
  assert.deepEqual([listed.length, listed[0]?.deleted_at], [1, null], 'an expired key stays in the list')
})

test('an invalid value is a 400 that names the field', async () => {
  const owner = await server.project()
  const { id } = await create(owner)
  const past = new Date(server.clock.now().getTime() - 1000).toISOString()

  for (const [field, path, body] of [
    ['name', '/org/api_keys', {}],
    ['name', '/org/api_keys', { name: '' }],
    ['name', '/org/api_keys', { name: 'x'.repeat(256) }],
    ['days_to_expire', '/org/api_keys', { name: 'x', days_to_expire: 0 }],
    ['days_to_expire', '/org/api_keys', { name: 'x', days_to_expire: 3651 }],
    ['days_to_expire', '/org/api_keys', { name: 'x', days_to_expire: 1.5 }],
    ['expires_at', '/org/api_keys', { name: 'x', expires_at: 'soon' }],
    ['expires_at', '/org/api_keys', { name: 'x', expires_at: past }],
    ['expires_at', '/org/api_keys', { name: 'x', expires_at: '2099-01-01T00:00:00Z', days_to_expire: 1 }],
    ['project_id', '/org/api_keys', { name: 'x', project_id: '' }],
    ['policy', '/org/api_keys', { name: 'x', policy: { statements: [] } }],
    ['days_to_expire', `/org/api_keys/${id}/rotate`, { days_to_expire: 0 }],
    ['expire_in_days', `/org/api_keys/${id}/rotate`, { expire_in_days: -1 }],
    ['expire_in_days', `/org/api_keys/${id}/rotate`, { days_to_expire: 2, expire_in_days: 3 }],
  ] as const) {
    const { status, body: failure } = await owner.call<Failure>('POST', path, body)
    assert.deepEqual([status, failure.message.split(':')[0]], [400, field], JSON.stringify(body))
  }
  assert.equal((await owner.call('PATCH', `/org/api_keys/${id}`, {})).status, 400)
  assert.equal((await owner.call('GET', '/org/api_keys?sort_by=key')).status, 400)
})

test('a key is created for an active project of the organization', async () => {
  const owner = await server.project()
  const stranger = await server.project()
  const { body: project } = await owner.call<Project>('POST', '/org/projects', { name: 'own' })

  const made = await create(owner, { name: 'x', project_id: project.id })
  assert.deepEqual([made.project_id, made.project_name], [project.id, 'own'])
  assert.equal((await owner.call('GET', '/browsers', undefined, { key: made.key })).status, 200)
  await owner.call('PATCH', '/org/projects/own', { status: 'archived' })
  for (const id of [stranger.id, project.id, 'own', 'nothing']) {
    const refused = await owner.call<Failure>('POST', '/org/api_keys', { name: 'x', project_id: id })
    assert.deepEqual([refused.status, refused.body.code], [404, 'project_not_found'], id)
  }
})

test('a key of one project creates, sees and changes only keys of that project', async () => {
  const owner = await server.project()
  const { body: project } = await owner.call<Project>('POST', '/org/projects', { name: 'own' })
  const own = await create(owner, { name: 'own', project_id: project.id })
  const wide = await create(owner, { name: 'wide' })
  const call = <Body = Failure>(method: string, path: string, body?: unknown) =>
    owner.call<Body>(method, path, body, { key: own.key })

  const made = await call<CreatedApiKey>('POST', '/org/api_keys', { name: 'second' })
  assert.deepEqual([made.status, made.body.project_id], [201, project.id])
  for (const projectId of [null, owner.id, 'nothing']) {
    assert.equal((await call('POST', '/org/api_keys', { name: 'x', project_id: projectId })).status, 403)
  }
  assert.deepEqual(
    (await call<ApiKey[]>('GET', '/org/api_keys?sort_by=name')).body.map(({ name }) => name),
    ['second', 'own'],
  )
  for (const [method, path, body] of [
    ['GET', `/org/api_keys/${wide.id}`],
    ['PATCH', `/org/api_keys/${wide.id}`, { name: 'taken over' }],
    ['DELETE', `/org/api_keys/${wide.id}`],
    ['POST', `/org/api_keys/${wide.id}/rotate`, {}],
  ] as const) {
    assert.equal((await call(method, path, body)).status, 404, `${method} ${path}`)
  }
  assert.equal((await call('DELETE', `/org/api_keys/${made.body.id}`)).status, 204)
})

test('a key cannot delete itself', async () => {
  const owner = await server.project()
  const { id, key } = await create(owner)

  const { status, body } = await owner.call<Failure>('DELETE', `/org/api_keys/${id}`, undefined, { key })

  assert.deepEqual([status, body.message], [400, 'id: an API key cannot delete itself.'])
  assert.equal(await statusWith(owner, key), 200)
})

test('a rotation returns a key of the same name and project, and the old one stays valid for a while', async () => {
  const owner = await server.project()
  const old = await create(owner, { name: 'turning', days_to_expire: 30, project_id: owner.id })
  server.clock.advance(10 * day)
  const rotate = async (body?: object) => {
    const answer = await owner.call<CreatedApiKey>('POST', `/org/api_keys/${old.id}/rotate`, body)
    assert.equal(answer.status, 201, JSON.stringify(answer.body))
    return answer.body
  }
  const inDays = (days: number) => new Date(server.clock.now().getTime() + days * day * 1000).toISOString()
  const oldEnd = async () => (await owner.call<ApiKey>('GET', `/org/api_keys/${old.id}`)).body.expires_at

  const next = await rotate()
  assert.deepEqual([next.name, next.project_id, next.expires_at], ['turning', owner.id, inDays(30)])
  assert.notEqual(next.id, old.id)
  assert.equal(await oldEnd(), inDays(7))
  assert.deepEqual([await statusWith(owner, old.key), await statusWith(owner, next.key)], [200, 200])

  assert.equal((await rotate({ days_to_expire: null, expire_in_days: 3650 })).expires_at, null)
  assert.equal(await oldEnd(), inDays(7), 'no rotation lengthens a life')
  const short = await rotate({ days_to_expire: 3 })
  assert.deepEqual([short.expires_at, await oldEnd()], [inDays(3), inDays(3)])
  await rotate({ expire_in_days: 0 })
  assert.deepEqual([await statusWith(owner, old.key), await statusWith(owner, next.key)], [401, 200])
})

test('after simultaneous rotations and a deletion, every returned key works or was deleted', async () => {
  const owner = await server.project()
  const { id } = await create(owner)

  const answers = await Promise.all([
    ...Array.from({ length: 8 }, () => owner.call<CreatedApiKey>('POST', `/org/api_keys/${id}/rotate`, {})),
    owner.call<CreatedApiKey>('DELETE', `/org/api_keys/${id}`),
  ])

  for (const { status, body } of answers.slice(0, 8)) {
    assert.ok(status === 201 || status === 404, String(status))
    if (status === 201) assert.equal(await statusWith(owner, body.key), 200)
  }
})

test('a list is sorted, filtered and paged', async () => {
  const owner = await server.project()
  const { body: project } = await owner.call<Project>('POST', '/org/projects', { name: 'Quay' })
  const keys: CreatedApiKey[] = []
  for (const body of [
    { name: 'Éclair', days_to_expire: 5 },
    { name: 'bun', project_id: project.id },
    { name: 'apple', days_to_expire: 1 },
  ]) {
    server.clock.advance(1)
    keys.push(await create(owner, body))
  }
  const [eclair, bun, apple] = keys as [CreatedApiKey, CreatedApiKey, CreatedApiKey]
  await owner.call('DELETE', `/org/api_keys/${apple.id}`)
  const names = async (query: string) =>
    (await owner.call<ApiKey[]>('GET', `/org/api_keys?${query}`)).body.map(({ name }) => name)

  assert.deepEqual(await names(''), ['bun', 'Éclair', 'test'])
  assert.deepEqual(await names('status=deleted'), ['apple'])
  assert.deepEqual(await names('status=all&sort_by=name&sort_direction=asc'), ['apple', 'bun', 'test', 'Éclair'])
  assert.deepEqual(await names('include_deleted=true&sort_by=expires_at&sort_direction=asc&limit=2'), [
    'apple',
    'Éclair',
  ])
  assert.deepEqual(await names('name=ECLAIR'), ['Éclair'])
  assert.deepEqual(await names('query=quay'), ['bun'])
  assert.deepEqual(await names('query=test'), ['bun', 'Éclair', 'test'], 'by the name of their creator')
  assert.deepEqual(await names(`query=${eclair.id.slice(0, 20)}`), ['Éclair'])
  assert.deepEqual(await names(`query=${encodeURIComponent(bun.masked_key.slice(0, 9))}`), ['bun'])
  assert.deepEqual(await names(`query=${bun.key.slice(8, 30)}`), [])
})
