import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { ProfileId, SessionId } from '@berth/contract/common/ids.ts'
import type { Profile } from '@berth/contract/profiles/profile.ts'
import type { FastifyReply } from 'fastify'
import { SessionReaper } from '../../../jobs/reap-sessions.ts'
import type { FakeAgent } from '../../../testing/fakes/fake-agent.ts'
import { type TestProject, TestServer } from '../../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

interface Refusal {
  readonly code: string
  readonly message: string
}

const agentOf = ({ session_id }: Browser): FakeAgent => server.host.agentOf(session_id as SessionId)
const gives = (state: string) => (reply: FastifyReply) => reply.send(state)

async function newProfile(project: TestProject, name: string): Promise<Profile> {
  const { status, body } = await project.call<Profile>('POST', '/profiles', { name })
  assert.equal(status, 201)
  return body
}

function using(project: TestProject, name: string, more: object = {}): Promise<Browser> {
  return project.session({ headless: true, profile: { name, save_changes: true }, ...more })
}

async function end(project: TestProject, { session_id }: Browser): Promise<void> {
  assert.equal((await project.call('DELETE', `/browsers/${session_id}`)).status, 204)
}

/** A profile with this saved state. */
async function savedProfile(project: TestProject, name: string, state: string): Promise<Profile> {
  const profile = await newProfile(project, name)
  const session = await using(project, name)
  agentOf(session).profile = gives(state)
  await end(project, session)
  return profile
}

async function download(project: TestProject, name: string): Promise<string> {
  const response = await fetch(`${server.url}/profiles/${name}/download`, {
    headers: { authorization: `Bearer ${project.key}` },
  })
  return response.text()
}

/** The blobs of the profiles of the project. */
async function blobs(): Promise<readonly string[]> {
  const names = server.services.blobs.list({ before: new Date(Date.now() + 60_000) })
  return (await Array.fromAsync(names)).toSorted()
}

test('a session starts with the state that another one has saved', async () => {
  const project = await server.project()
  const profile = await newProfile(project, 'ann')

  const first = await using(project, 'ann')
  assert.deepEqual([first.profile?.id, first.profile_save_changes], [profile.id, true])
  assert.equal(server.host.specOf(first.session_id as SessionId).awaitsProfile, false, 'there is nothing to load')
  agentOf(first).profile = gives('cookies of Ann')
  server.clock.advance(30)
  await end(project, first)

  const { body: saved } = await project.call<Profile>('GET', '/profiles/ann')
  assert.deepEqual(
    [saved.updated_at, saved.last_used_at],
    [server.clock.now().toISOString(), server.clock.now().toISOString()],
  )
  const second = await project.session({ profile: { id: profile.id } })
  const third = await project.session({ profile: { id: profile.id }, start_url: 'http://127.0.0.1:1/' })
  assert.equal(server.host.specOf(second.session_id as SessionId).awaitsProfile, true)
  assert.deepEqual(agentOf(second).loaded, [{ state: 'cookies of Ann', tabs: 'restore' }])
  assert.deepEqual(
    agentOf(third).loaded,
    [{ state: 'cookies of Ann', tabs: 'blank' }],
    'a start page takes their place',
  )
  assert.equal(second.profile_save_changes, false)
  await end(project, second)
  assert.equal(await download(project, 'ann'), 'cookies of Ann', 'nothing is saved that was not asked for')
  const { body: ended } = await project.call('GET', `/browsers/${first.session_id}?include_deleted=true`)
  assert.equal(ended.profile?.id, profile.id)
})

test('stored states are encrypted', async () => {
  const project = await server.project()
  const { id } = await savedProfile(project, 'sealed', 'a very secret cookie')

  const { state_blob } = await server.database
    .selectFrom('profiles')
    .select('state_blob')
    .where('id', '=', id as ProfileId)
    .executeTakeFirstOrThrow()
  const stored = await Array.fromAsync(await server.services.blobs.read(state_blob as string))

  assert.doesNotMatch(Buffer.concat(stored as Buffer[]).toString('latin1'), /secret/)
})

test('a session refers to an existing profile by exactly one of id and name', async () => {
  const project = await server.project()
  const { id } = await newProfile(project, 'ann')
  const { session_id } = await project.session()

  for (const [profile, status, code] of [
    [{}, 400, 'invalid_input'],
    [{ save_changes: true }, 400, 'invalid_input'],
    [{ id, name: 'ann' }, 400, 'invalid_input'],
    [{ name: '' }, 400, 'invalid_input'],
    [{ id: 'ann' }, 404, 'profile_not_found'],
    [{ name: id }, 404, 'profile_not_found'],
    [{ name: 'nobody' }, 404, 'profile_not_found'],
    ['ann', 400, 'invalid_input'],
  ] as const) {
    for (const [method, path] of [
      ['POST', '/browsers'],
      ['PATCH', `/browsers/${session_id}`],
    ] as const) {
      const answer = await project.call<Refusal>(method, path, { profile })
      assert.deepEqual([answer.status, answer.body.code], [status, code], `${method} ${JSON.stringify(profile)}`)
      assert.match(answer.body.message, /profile/)
    }
  }
  assert.equal((await project.call<Browser[]>('GET', '/browsers')).body.length, 1, 'nothing was made')
})

test('a session that times out is saved', async () => {
  const project = await server.project()
  await newProfile(project, 'idle')
  server.host.firstState = { idle_since: server.clock.now().getTime() }
  const session = await using(project, 'idle', { timeout_seconds: 60 })
  server.host.firstState = {}
  agentOf(session).profile = gives('left alone')

  server.clock.advance(60)
  await server.reap()

  assert.equal(await download(project, 'idle'), 'left alone')
})

test('of two sessions that save, the complete state of the one that ended last wins', async () => {
  const project = await server.project()
  await newProfile(project, 'both')
  const [early, late] = [await using(project, 'both'), await using(project, 'both')]
  const asked = Promise.withResolvers<ServerResponse>()
  agentOf(early).profile = (reply) => {
    reply.hijack()
    asked.resolve(reply.raw)
  }
  agentOf(late).profile = gives('of the late one')

  const deletion = end(project, early)
  const response = await asked.promise
  server.clock.advance(1)
  await end(project, late)
  response.end('of the early one')
  await deletion

  assert.equal(await download(project, 'both'), 'of the late one')
})

test('a failed save keeps the previous state, leaves nothing and lets the session end', async () => {
  const project = await server.project()
  await savedProfile(project, 'kept', 'the state before')
  const before = await blobs()

  for (const fail of [
    (reply: FastifyReply) => reply.code(500).send('no'),
    (reply: FastifyReply) => {
      reply.hijack()
      reply.raw.writeHead(200).write('half of a st')
      setImmediate(() => reply.raw.destroy())
    },
  ]) {
    const session = await using(project, 'kept')
    agentOf(session).profile = fail
    await end(project, session)
    const { body } = await project.call('GET', `/browsers/${session.session_id}?include_deleted=true`)
    assert.equal(body.usage_status, 'ready')
  }
  const crashed = await using(project, 'kept')
  agentOf(crashed).kill()
  while ((await project.call('GET', `/browsers/${crashed.session_id}`)).status !== 404) await delay(10)

  assert.equal(await download(project, 'kept'), 'the state before')
  assert.deepEqual(await blobs(), before)
})

test('a profile can be deleted while sessions use it, which continue and save nothing', async () => {
  const project = await server.project()
  await savedProfile(project, 'doomed', 'state')
  const session = await using(project, 'doomed')
  const before = await blobs()

  assert.equal((await project.call('DELETE', '/profiles/doomed')).status, 204)
  const { body } = await project.call('GET', `/browsers/${session.session_id}`)
  assert.deepEqual([body.session_id, body.profile], [session.session_id, undefined])
  await newProfile(project, 'another')
  const again = await project.call<Refusal>('PATCH', `/browsers/${session.session_id}`, {
    profile: { name: 'another' },
  })
  assert.equal(again.body.code, 'profile_already_loaded', 'its browser has the old state still')
  await end(project, session)

  assert.equal((await blobs()).length, before.length - 1)
})

test('a delete of the profile in the middle of its save leaves nothing', async () => {
  const project = await server.project()
  await newProfile(project, 'gone')
  const session = await using(project, 'gone')
  const before = await blobs()
  agentOf(session).profile = async (reply) => {
    await project.call('DELETE', '/profiles/gone')
    return reply.send('too late')
  }

  await end(project, session)

  assert.deepEqual(await blobs(), before)
})

test('after a crash of the server during a save the next one saves if the machine still runs', async () => {
  const project = await server.project()
  await savedProfile(project, 'crash', 'the state before')
  const [alive, dead] = [await using(project, 'crash'), await using(project, 'crash')]
  for (const session of [alive, dead]) {
    const asked = Promise.withResolvers<void>()
    agentOf(session).profile = (reply) => {
      reply.hijack()
      asked.resolve()
    }
    project.call('DELETE', `/browsers/${session.session_id}`).catch(() => {})
    await asked.promise
    server.clock.advance(1)
  }
  await server.crash()
  const agent = agentOf(alive)
  agentOf(dead).kill()
  agent.profile = gives('saved by the next server')

  await server.start()
  await server.reap()

  assert.equal(await download(project, 'crash'), 'saved by the next server')
  for (const { session_id } of [alive, dead]) {
    const { body } = await project.call('GET', `/browsers/${session_id}?include_deleted=true`)
    assert.equal(body.usage_status, 'ready')
  }
  assert.equal(server.host.has(alive.session_id as SessionId), false)
})

test('a slow save delays no other session', async () => {
  const project = await server.project()
  await newProfile(project, 'slow')
  server.host.firstState = { idle_since: server.clock.now().getTime() }
  const slow = await using(project, 'slow', { timeout_seconds: 60 })
  const quick = await project.session({ timeout_seconds: 61 })
  server.host.firstState = {}
  const asked = Promise.withResolvers<ServerResponse>()
  agentOf(slow).profile = (reply) => {
    reply.hijack()
    asked.resolve(reply.raw)
  }

  const reaper = new SessionReaper({ ...server.services, driverId: 'test', clock: server.clock }, 5)
  server.clock.advance(60)
  const response = await asked.promise
  server.clock.advance(1)
  while ((await project.call('GET', `/browsers/${quick.session_id}`)).status !== 404) await delay(10)
  response.end('at last')
  await reaper.close()

  assert.equal(await download(project, 'slow'), 'at last')
})

test('a state that is replaced while it is read is read completely', async () => {
  const project = await server.project()
  const old = 'x'.repeat(3_000_000)
  const { id } = await savedProfile(project, 'read', old)
  const reader = await server.services.profiles.open(id as ProfileId)
  const session = await using(project, 'read')
  agentOf(session).profile = gives('new')

  await end(project, session)

  const read = Buffer.concat((await Array.fromAsync(reader as AsyncIterable<Buffer>)) as Buffer[])
  assert.equal(read.toString(), old)
  assert.equal(await download(project, 'read'), 'new')
})

test('an unusable state is rejected, and nothing is left of the session', async () => {
  const project = await server.project()
  const { id } = await savedProfile(project, 'broken', 'no archive at all')
  server.host.refusesProfiles = true

  const answer = await project.call<Refusal>('POST', '/browsers', { profile: { id }, name: 'never' })
  server.host.refusesProfiles = false

  assert.deepEqual(
    [answer.status, answer.body.code, answer.headers.get('x-should-retry')],
    [409, 'profile_not_loadable', 'false'],
  )
  assert.equal((await project.session({ name: 'never' })).name, 'never', 'its name is free')
})

test('an update loads a profile into a session that has none, once', async () => {
  const project = await server.project()
  const { id } = await savedProfile(project, 'later', 'state of later')
  const session = await project.session()
  const patch = (body: object) => project.call<Browser & Refusal>('PATCH', `/browsers/${session.session_id}`, body)

  agentOf(session).refusesProfiles = true
  const refused = await patch({ name: 'renamed', profile: { id } })
  agentOf(session).refusesProfiles = false
  assert.deepEqual([refused.status, refused.body.code], [409, 'profile_not_loadable'])
  const { body: untouched } = await project.call('GET', `/browsers/${session.session_id}`)
  assert.deepEqual([untouched.name, untouched.profile], [undefined, undefined], 'all of the update is refused')

  const answers = await Promise.all(
    Array.from({ length: 3 }, () => patch({ profile: { id, save_changes: true }, start_url: 'http://127.0.0.1:1/' })),
  )
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 409, 409])
  const done = answers.find(({ status }) => status === 200)
  assert.deepEqual([done?.body.profile?.id, done?.body.profile_save_changes], [id, true])
  for (const { body, headers } of answers.filter(({ status }) => status === 409)) {
    assert.deepEqual([body.code, headers.get('x-should-retry')], ['profile_already_loaded', 'false'])
  }
  assert.deepEqual(agentOf(session).loaded, [{ state: 'state of later', tabs: 'blank' }])
  agentOf(session).profile = gives('changed by an update')
  await end(project, session)
  assert.equal(await download(project, 'later'), 'changed by an update')
})

test('an update that cannot be recorded reverts the profile', async () => {
  const project = await server.project()
  await savedProfile(project, 'unrecorded', 'state')
  const session = await project.session()
  const agent = agentOf(session)
  agent.onProfile = () => project.call('DELETE', '/profiles/unrecorded').then(() => {})

  const { status, body } = await project.call<Refusal>('PATCH', `/browsers/${session.session_id}`, {
    profile: { name: 'unrecorded' },
  })

  assert.deepEqual([status, body.code], [404, 'profile_not_found'])
  assert.deepEqual([agent.loaded.length, agent.takenBack], [1, 1])
  const { body: untouched } = await project.call('GET', `/browsers/${session.session_id}`)
  assert.deepEqual([untouched.profile, untouched.profile_save_changes], [undefined, undefined])
})

test('an update with an empty profile does not change the browser, and saves it at the end', async () => {
  const project = await server.project()
  await newProfile(project, 'fresh')
  const session = await project.session()

  const { status, body } = await project.call('PATCH', `/browsers/${session.session_id}`, {
    profile: { name: 'fresh', save_changes: true },
  })
  assert.deepEqual([status, body.profile?.name, agentOf(session).loaded], [200, 'fresh', []])
  agentOf(session).profile = gives('grown without one')
  await end(project, session)

  assert.equal(await download(project, 'fresh'), 'grown without one')
})

test('sessions are found by the id and the name of their profile', async () => {
  const project = await server.project()
  const { id } = await newProfile(project, 'Findable')
  const { session_id } = await using(project, 'Findable')
  await project.session()
  const found = async (query: string) =>
    (await project.call<Browser[]>('GET', `/browsers?status=active&query=${query}`)).body.map((one) => one.session_id)

  assert.deepEqual(await found(id), [session_id])
  assert.deepEqual(await found('findable'), [session_id])
  assert.deepEqual(await found('nothing'), [])
})

test('the profiles of sessions that survive a server stop are saved at their end', async () => {
  const project = await server.project()
  await savedProfile(project, 'outlived', 'the state before')
  const session = await using(project, 'outlived')
  agentOf(session).profile = gives('the state after')

  await server.crash()
  await server.start()
  assert.equal(await download(project, 'outlived'), 'the state before')
  await end(project, session)

  assert.equal(await download(project, 'outlived'), 'the state after')
})
