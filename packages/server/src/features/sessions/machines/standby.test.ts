import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { takeThumbnail } from '@berth/contract/agent/agent-endpoints.ts'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import WebSocket from 'ws'
import type { FakeAgent } from '../../../testing/fakes/fake-agent.ts'
import { FakeDriver } from '../../../testing/fakes/fake-driver.ts'
import { type TestProject, TestServer } from '../../../testing/server-test.ts'

const standbyMilliseconds = 200

const server = await TestServer.open({ standbyMilliseconds })
server.host.capabilities = { ...server.host.capabilities, hasGpu: true }
server.host.operationsOf = () => (request, response) => {
  request.resume()
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"x":1,"y":2}')
}
after(() => server.close())

const agentOf = ({ session_id }: Browser): FakeAgent => server.host.agentOf(session_id as SessionId)

/** A session whose agent reports that it has been idle for a while. */
async function idleSession(project: TestProject, request: object = { headless: true }): Promise<Browser> {
  server.host.firstState = { idle_since: server.clock.now().getTime() - 50_000 }
  const session = await project.session(request)
  server.host.firstState = {}
  return session
}

async function frozenSession(project: TestProject, request?: object): Promise<Browser> {
  const session = await idleSession(project, request)
  await until(async () => !(await isAwake(session)))
  assert.ok(agentOf(session).isFrozen)
  return session
}

/** Makes the agent report activity, which keeps the session awake. */
function use(session: Browser): void {
  agentOf(session).setState({ idle_since: null })
}

function leave(session: Browser): void {
  agentOf(session).setState({ idle_since: server.clock.now().getTime() })
}

async function isAwake({ session_id }: Browser): Promise<boolean> {
  return (await server.row(session_id)).standby_since === null
}

async function staysAwake(session: Browser): Promise<void> {
  await delay(3 * standbyMilliseconds)
  assert.equal(agentOf(session).isFrozen, false)
}

test('an idle session is frozen, and reading its record does not wake it', async () => {
  const project = await server.project()
  const { session_id } = await frozenSession(project, { headless: true, name: 'sleeper' })

  const got = await project.call('GET', '/browsers/sleeper')
  const listed = await project.call<Browser[]>('GET', '/browsers')
  const renamed = await project.call('PATCH', `/browsers/${session_id}`, { tags: { a: 'b' } })
  const pictured = await project.call('GET', '/browsers/sleeper/thumbnail')
  await server.reap()

  assert.deepEqual([got.status, listed.status, renamed.status, pictured.status], [200, 200, 200, 202])
  assert.deepEqual(
    listed.body.map((one) => one.session_id),
    [session_id],
  )
  assert.ok(agentOf(got.body).isFrozen)
})

const awakening: Readonly<Record<string, (project: TestProject, session: Browser) => Promise<unknown>>> = {
  'an operation': (project, { session_id }) =>
    project.call('POST', `/browsers/${session_id}/computer/get_mouse_position`),
  'an operation of the session’s token': (_project, { cdp_ws_url, base_url }) =>
    fetch(`${base_url}/computer/get_mouse_position?${new URL(cdp_ws_url).searchParams}`, { method: 'POST' }),
  'an update that changes the browser': (project, { session_id }) =>
    project.call('PATCH', `/browsers/${session_id}`, { viewport: { width: 800, height: 600 } }),
  'a discovery of targets': (_project, { cdp_ws_url }) =>
    fetch(cdp_ws_url.replace(/^ws/, 'http').replace('/cdp?', '/json/version?')),
  'a CDP client': async (_project, { cdp_ws_url }) => {
    const socket = new WebSocket(cdp_ws_url)
    await once(socket, 'open')
    socket.terminate()
    return { status: 200 }
  },
}

for (const [what, ask] of Object.entries(awakening)) {
  test(`${what} wakes a frozen session before it is forwarded, and the session is frozen again`, async () => {
    const project = await server.project()
    const session = await frozenSession(project)

    use(session)
    const { status } = (await ask(project, session)) as { status: number }

    assert.equal(status, 200)
    await until(() => isAwake(session))
    leave(session)
    await until(async () => agentOf(session).isFrozen)
  })
}

test('many concurrent requests wake a session once, and each gets a response', async () => {
  const project = await server.project()
  const { session_id } = await frozenSession(project)

  const answers = await Promise.all(
    Array.from({ length: 20 }, () => project.call('POST', `/browsers/${session_id}/computer/get_mouse_position`)),
  )

  assert.deepEqual(
    answers.map(({ status }) => status),
    Array.from({ length: 20 }, () => 200),
  )
})

test('a session is not frozen while its agent reports activity', async () => {
  const project = await server.project()

  const session = await project.session()

  await staysAwake(session)
  leave(session)
  await until(async () => agentOf(session).isFrozen)
})

test('a session is not frozen while a client is connected', async () => {
  const project = await server.project()
  const session = await idleSession(project)
  const socket = new WebSocket(session.cdp_ws_url)
  await once(socket, 'open')

  await staysAwake(session)
  socket.send('ping')

  const [answer] = await once(socket, 'message')
  assert.equal(String(answer), 'ping')
  socket.terminate()
  await until(async () => agentOf(session).isFrozen)
})

test('taking a thumbnail does not count as activity, and does not wake a frozen session', async () => {
  const project = await server.project()
  const session = await project.session()
  const agent = agentOf(session)
  const asked = Promise.withResolvers<void>()
  const leaving = new AbortController()
  agent.beforeThumbnail = () => new Promise(() => asked.resolve())
  const take = (options: object) =>
    server.services.machines.commandPassively(session.session_id as SessionId, takeThumbnail, {}, options)
  const picture = assert.rejects(take({ limitMilliseconds: 600_000, signal: leaving.signal }))
  await asked.promise

  leave(session)

  await until(async () => agent.isFrozen)
  leaving.abort()
  await picture
  await assert.rejects(take({}), { code: 'session_unreachable' })
  assert.deepEqual([agent.isFrozen, agent.thumbnails], [true, 1])
})

test('a session with a GPU is never frozen', async () => {
  const project = await server.project()

  const session = await idleSession(project, { gpu: true })

  await staysAwake(session)
})

test('the uptime counts only the time awake, before and after the session has ended', async () => {
  const project = await server.project()
  const session = await frozenSession(project)
  const uptimeOf = async () =>
    (await project.call('GET', `/browsers/${session.session_id}?include_deleted=true`)).body.usage.uptime_ms

  server.clock.advance(600)
  const frozen = await uptimeOf()
  use(session)
  await project.call('POST', `/browsers/${session.session_id}/computer/get_mouse_position`)
  await until(() => isAwake(session))
  server.clock.advance(20)
  const awake = await uptimeOf()
  leave(session)
  await until(async () => !(await isAwake(session)))
  server.clock.advance(3_000)
  await project.call('DELETE', `/browsers/${session.session_id}`)

  assert.deepEqual([frozen, awake, await uptimeOf()], [0, 20_000, 20_000])
})

test('the timeout counts from the start of the standby, and starts again after activity', async () => {
  const project = await server.project()
  const session = await frozenSession(project, { headless: true, timeout_seconds: 60 })
  const isThere = async () => {
    await server.reap()
    return (await project.call('GET', `/browsers/${session.session_id}`)).status === 200
  }

  server.clock.advance(50)
  assert.equal(await isThere(), true, 'its time began with its standby')
  await project.call('PATCH', `/browsers/${session.session_id}`, { viewport: { width: 800, height: 600 } })
  const usedAt = server.clock.now().getTime()
  await until(async () => (await server.row(session.session_id)).idle_since?.getTime() === usedAt)
  await until(async () => !(await isAwake(session)))
  server.clock.advance(50)
  assert.equal(await isThere(), true, 'it was used')
  server.clock.advance(11)
  assert.equal(await isThere(), false)
})

test('after a crash of the server a frozen session is adopted frozen, and responds', async () => {
  const project = await server.project()
  const session = await frozenSession(project)
  const agent = agentOf(session)
  await server.crash()

  await server.start()

  await server.reap()
  await staysFrozen(agent)
  server.clock.advance(60)
  assert.equal((await project.call('GET', `/browsers/${session.session_id}`)).body.usage.uptime_ms, 0)
  const answer = await project.call('POST', `/browsers/${session.session_id}/computer/get_mouse_position`)
  assert.equal(answer.status, 200)
  await until(async () => agent.isFrozen)
})

const unrecorded: Readonly<Record<string, (session: Browser) => Promise<void>>> = {
  'before it has recorded that it froze the session': async ({ session_id }) =>
    new FakeDriver(server.host).freeze((await server.row(session_id)).machine_id),
  'before it has recorded that it woke the session': async (session) => {
    await server.database
      .updateTable('sessions')
      .set({ standby_since: server.clock.now() })
      .where('id', '=', session.session_id as SessionId)
      .execute()
  },
}

for (const [moment, interrupt] of Object.entries(unrecorded)) {
  test(`when the server is killed ${moment}, the next one records the actual state`, async () => {
    const project = await server.project()
    const session = await project.session()
    const agent = agentOf(session)
    await server.crash()
    await interrupt(session)

    await server.start()

    await until(async () => ((await server.row(session.session_id)).standby_since !== null) === agent.isFrozen)
    const answer = await project.call('POST', `/browsers/${session.session_id}/computer/get_mouse_position`)
    assert.equal(answer.status, 200)
  })
}

test('a frozen session can be deleted, after its profile is saved', async () => {
  const project = await server.project()
  await project.call('POST', '/profiles', { name: 'kept' })
  const profile = { name: 'kept', save_changes: true }
  const { session_id } = await frozenSession(project, { headless: true, profile })

  const deleted = await project.call('DELETE', `/browsers/${session_id}`)

  assert.equal(deleted.status, 204)
  assert.equal(server.host.has(session_id as SessionId), false)
  const next = await project.session({ headless: true, profile: { name: 'kept' } })
  assert.deepEqual(agentOf(next).loaded, [{ state: 'the state of the fake browser', tabs: 'restore' }])
})

test('a session that is deleted during a freeze is frozen first, so that it can be stopped', async () => {
  const project = await server.project()
  const hang = Promise.withResolvers<void>()
  const freezing = Promise.withResolvers<void>()
  server.host.onFreeze = () => {
    freezing.resolve()
    return hang.promise
  }
  const session = await idleSession(project)
  await freezing.promise
  server.host.onFreeze = async () => {}

  const deletion = project.call('DELETE', `/browsers/${session.session_id}`)
  await until(async () => (await server.row(session.session_id)).state === 'ending')
  await delay(50)
  assert.ok(server.host.has(session.session_id as SessionId))
  hang.resolve()

  assert.equal((await deletion).status, 204)
  assert.equal(server.host.has(session.session_id as SessionId), false)
})

test('a session that cannot be frozen stays usable', async () => {
  const project = await server.project()
  const failed = Promise.withResolvers<void>()
  server.host.onFreeze = async () => {
    failed.resolve()
    throw new Error('no freezer')
  }
  const session = await idleSession(project)
  await failed.promise
  server.host.onFreeze = async () => {}
  use(session)

  const answer = await project.call('POST', `/browsers/${session.session_id}/computer/get_mouse_position`)

  assert.equal(answer.status, 200)
  assert.equal(await isAwake(session), true)
  leave(session)
  await until(async () => agentOf(session).isFrozen)
})

test('a machine that ends while it is frozen ends its session', async () => {
  const project = await server.project()
  const session = await frozenSession(project)

  agentOf(session).kill()

  await until(async () => (await project.call('GET', `/browsers/${session.session_id}`)).status === 404)
})

async function staysFrozen(agent: FakeAgent): Promise<void> {
  await delay(3 * standbyMilliseconds)
  assert.equal(agent.isFrozen, true)
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!(await isTrue())) {
    assert.ok(performance.now() < deadline, 'it does not come true')
    await delay(10)
  }
}
