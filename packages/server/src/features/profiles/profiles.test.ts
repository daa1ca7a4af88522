import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { ProfileId } from '@berth/contract/common/ids.ts'
import type { Profile } from '@berth/contract/profiles/profile.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

const create = (project: TestProject, name?: string) => project.call<Profile>('POST', '/profiles', { name })

test('a profile is created, read by id and name, renamed and deleted', async () => {
  const project = await server.project()

  const created = await create(project, 'Ann.1')
  assert.equal(created.status, 201)
  assert.match(created.body.id, /^prf[a-z0-9]{21}$/)
  for (const key of [created.body.id, 'Ann.1']) {
    const read = await project.call<Profile>('GET', `/profiles/${key}`)
    assert.deepEqual([read.status, read.body], [200, created.body])
  }
  server.clock.advance(5)
  const renamed = await project.call<Profile>('PATCH', '/profiles/Ann.1', { name: 'Bob' })

  assert.deepEqual([renamed.status, renamed.body.id, renamed.body.name], [200, created.body.id, 'Bob'])
  assert.equal(Date.parse(renamed.body.updated_at) - Date.parse(created.body.updated_at), 5_000)
  assert.equal((await project.call('GET', '/profiles/Ann.1')).status, 404)
  assert.equal((await project.call('DELETE', '/profiles/Bob')).status, 204)
  assert.equal((await project.call('DELETE', `/profiles/${created.body.id}`)).status, 404)
  assert.equal((await create(project, 'Bob')).status, 201, 'the name is free again')
})

test('an invalid name is a 400 that names the field', async () => {
  const project = await server.project()
  await create(project, 'one')
  const looksLikeAnId = `a${'b1'.repeat(11)}c`

  for (const name of ['', 'a b', 'é', 'x'.repeat(256), looksLikeAnId, 5, {}]) {
    for (const [method, path] of [
      ['POST', '/profiles'],
      ['PATCH', '/profiles/one'],
    ] as const) {
      const { status, body } = await project.call<{ code: string; message: string }>(method, path, { name })
      assert.deepEqual([status, body.code], [400, 'invalid_input'], String(name))
      assert.match(body.message, /^name: /)
    }
  }
  assert.equal((await project.call('PATCH', '/profiles/one', {})).status, 400, 'a rename needs a name')
  for (const body of [{}, { name: null }, undefined]) {
    assert.equal((await project.call<Profile>('POST', '/profiles', body)).body.name, null)
  }
  assert.equal((await create(project, 'x'.repeat(255))).status, 201)
})

test('of twenty simultaneous creates with one name one succeeds, and the others are not retryable', async () => {
  const project = await server.project()

  const answers = await Promise.all(Array.from({ length: 20 }, () => create(project, 'taken')))

  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, ...Array.from({ length: 19 }, () => 409)])
  for (const { status, headers, body } of answers.filter(({ status }) => status === 409)) {
    assert.deepEqual(
      [status, (body as unknown as { code: string }).code, headers.get('x-should-retry')],
      [409, 'profile_name_taken', 'false'],
    )
  }
})

test('of ten simultaneous renames to one name one succeeds', async () => {
  const project = await server.project()
  const profiles = await Promise.all(Array.from({ length: 10 }, (_value, index) => create(project, `before-${index}`)))

  const answers = await Promise.all(
    profiles.map(({ body }) => project.call('PATCH', `/profiles/${body.id}`, { name: 'after' })),
  )

  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, ...Array.from({ length: 9 }, () => 409)])
  const own = profiles.find((_profile, index) => answers[index]?.status === 200)
  assert.equal((await project.call('PATCH', `/profiles/${own?.body.id}`, { name: 'after' })).status, 200, 'to itself')
})

test('profiles of another project are not found, and their names are free', async () => {
  const [mine, theirs] = [await server.project(), await server.project()]
  const { body } = await create(theirs, 'secret')

  for (const [method, path, request] of [
    ['GET', `/profiles/${body.id}`, undefined],
    ['PATCH', `/profiles/${body.id}`, { name: 'x' }],
    ['DELETE', '/profiles/secret', undefined],
    ['GET', `/profiles/${body.id}/download`, undefined],
    ['POST', '/browsers', { profile: { id: body.id } }],
  ] as const) {
    const answer = await mine.call<{ code: string }>(method, path, request)
    assert.deepEqual([answer.status, answer.body.code], [404, 'profile_not_found'], `${method} ${path}`)
  }
  assert.deepEqual((await mine.call<Profile[]>('GET', '/profiles')).body, [])
  assert.equal((await create(mine, 'secret')).status, 201)
})

test('lists are paged, newest first, and filtered by text and name', async () => {
  const project = await server.project()
  const ids: string[] = []
  for (let index = 0; index < 25; index++) {
    server.clock.advance(1)
    ids.unshift((await create(project, `Profile-${index}`)).body.id)
  }
  const list = async (query: string) => {
    const { status, headers, body } = await project.call<Profile[]>('GET', `/profiles?${query}`)
    assert.equal(status, 200)
    return { ids: body.map(({ id }) => id), more: headers.get('x-has-more'), next: headers.get('x-next-offset') }
  }

  assert.deepEqual(await list('limit=10'), { ids: ids.slice(0, 10), more: 'true', next: '10' })
  assert.deepEqual(await list('limit=10&offset=20'), { ids: ids.slice(20), more: 'false', next: '0' })
  assert.deepEqual(await list('offset=100000'), { ids: [], more: 'false', next: '0' })
  assert.deepEqual((await list('query=FILE-24')).ids, ids.slice(0, 1))
  assert.deepEqual((await list(`query=${ids[3]?.slice(5)}`)).ids, [ids[3]])
  assert.deepEqual((await list('query=%25')).ids, [])
  assert.deepEqual(
    (await list(`name=${encodeURIComponent('pröfílE-7')}`)).ids,
    [ids[17]],
    'case and accents do not count',
  )
  assert.deepEqual((await list('name=profile')).ids, [], 'the whole name counts')
})

test('a profile without a state downloads as 202 without a body', async () => {
  const project = await server.project()
  await create(project, 'empty')

  const { status, body } = await project.call('GET', '/profiles/empty/download')

  assert.deepEqual([status, body], [202, undefined])
})

test('a lost or moved state is an error, and never the state of another profile', async () => {
  const project = await server.project()
  const [mine, other] = [await create(project, 'mine'), await create(project, 'other')]
  const { session_id } = await project.session({ profile: { name: 'mine', save_changes: true } })
  await project.call('DELETE', `/browsers/${session_id}`)
  const { state_blob, state_ended_at } = await stateOf(mine.body)
  const setState = (profile: Profile, columns: object) =>
    server.database
      .updateTable('profiles')
      .set(columns)
      .where('id', '=', profile.id as ProfileId)
      .execute()

  await setState(mine.body, { state_blob: null, state_ended_at: null })
  await setState(other.body, { state_blob, state_ended_at })
  await assert.rejects(project.call('GET', '/profiles/other/download'), 'the download breaks off')
  await server.services.blobs.remove(state_blob as string)
  const { status } = await project.call('GET', '/profiles/other/download')

  assert.equal(status, 500, 'that is no empty profile')
})

function stateOf({ id }: Profile) {
  return server.database
    .selectFrom('profiles')
    .selectAll()
    .where('id', '=', id as ProfileId)
    .executeTakeFirstOrThrow()
}
