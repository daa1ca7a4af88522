import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { ProjectId } from '@berth/contract/common/ids.ts'
import type { OrgEntitlements, OrgLimits } from '@berth/contract/organizations/organization-endpoints.ts'
import type { Project } from '@berth/contract/projects/project.ts'
import { newApiKey } from '../../access/secrets.ts'
import { type ApiAnswer, type TestProject, TestServer } from '../../testing/server-test.ts'

const limits = { maxSessions: 5, requestsPerMinute: 40 }
const server = await TestServer.open({ isShared: true, limits })
const sibling = await server.sibling('sibling')
after(async () => {
  await sibling.close()
  await server.close()
})

interface Failure {
  readonly code: string
  readonly message: string
}

const readLimits = async (owner: TestProject) => (await owner.call<OrgLimits>('GET', '/org/limits')).body

/** Creates sessions concurrently, alternating between the two servers. */
function createOnBoth(owner: TestProject, count: number, headers: Record<string, string> = {}) {
  const other = owner.on(sibling)
  return Promise.all(
    Array.from({ length: count }, (_value, index) =>
      (index % 2 === 0 ? owner : other).call<Browser & Failure>('POST', '/browsers', { headless: true }, { headers }),
    ),
  )
}

function counted(answers: readonly ApiAnswer<unknown>[]) {
  return Object.fromEntries(
    [...Map.groupBy(answers, ({ status }) => status)].map(([key, group]) => [key, group.length]),
  )
}

test('of twenty concurrent creates on two servers, as many succeed as the organization has free slots', async () => {
  const owner = await server.project()

  const answers = await createOnBoth(owner, 20)

  assert.deepEqual(counted(answers), { 200: 5, 429: 15 })
  for (const { status, headers, body } of answers.filter((answer) => answer.status === 429)) {
    assert.deepEqual([status, body.code, headers.get('x-should-retry')], [429, 'session_limit_reached', 'true'])
    assert.equal(headers.get('retry-after'), '5')
  }
  assert.equal((await readLimits(owner)).concurrent_sessions_available, 0)
})

test('of two creates for the last free slot, exactly one succeeds', async () => {
  const owner = await server.project()
  await createOnBoth(owner, 4)

  for (let round = 0; round < 5; round += 1) {
    const answers = await createOnBoth(owner, 2)
    assert.deepEqual(counted(answers), { 200: 1, 429: 1 })
    // Either server may have its machine, and only that server ends it.
    const index = answers.findIndex(({ status }) => status === 200)
    const its = index === 0 ? owner : owner.on(sibling)
    assert.equal((await its.call('DELETE', `/browsers/${answers[index]?.body.session_id}`)).status, 204)
  }
})

test('a project has its own or the default limit, and never more than the organization', async () => {
  const owner = await server.project()
  const { body: project } = await owner.call<Project>('POST', '/org/projects', { name: 'second' })
  const headers = { 'X-Kernel-Project-Id': project.id }
  const limitProject = (limit: number) =>
    owner.call('PATCH', `/org/projects/${project.id}/limits`, { max_concurrent_sessions: limit })
  const limitAll = (limit: number) =>
    owner.call<Failure>('PATCH', '/org/limits', { default_project_max_concurrent_sessions: limit })

  await limitAll(1)
  assert.deepEqual(counted(await createOnBoth(owner, 6, headers)), { 200: 1, 429: 5 })
  await limitProject(3)
  assert.deepEqual(counted(await createOnBoth(owner, 6, headers)), { 200: 2, 429: 4 })
  const [refused] = await createOnBoth(owner, 1, headers)
  assert.match(refused?.body.message ?? '', /^The project has 3 sessions/)
  await limitProject(100)
  assert.deepEqual(counted(await createOnBoth(owner, 6, headers)), { 200: 2, 429: 4 })
  await limitProject(0)
  await limitAll(0)
  assert.match((await createOnBoth(owner, 1))[0]?.body.message ?? '', /^The organization has 5 sessions/)
})

test('the usage of the organization is correct, also while sessions start and after failures', async () => {
  const owner = await server.project()
  const used = async () => {
    const { concurrent_sessions_used, concurrent_sessions_available } = await readLimits(owner)
    return [concurrent_sessions_used, concurrent_sessions_available]
  }
  assert.deepEqual(await used(), [0, 5])

  let whileStarting: unknown
  server.host.onStart = async () => {
    whileStarting = await used()
  }
  const session = await owner.session()
  server.host.onStart = async () => {}
  assert.deepEqual(
    [whileStarting, await used()],
    [
      [1, 4],
      [1, 4],
    ],
  )
  server.host.failNextStart('no luck')
  assert.equal((await owner.call('POST', '/browsers', {})).status, 500)
  assert.deepEqual(await used(), [1, 4])
  await owner.call('DELETE', `/browsers/${session.session_id}`)
  assert.deepEqual(await used(), [0, 5])
})

test('a rejected session occupies neither its name nor a slot', async () => {
  const owner = await server.project()
  const sessions = await Promise.all(Array.from({ length: 5 }, () => owner.session()))
  assert.equal((await owner.call('POST', '/browsers', { name: 'late' })).status, 429)

  await owner.call('DELETE', `/browsers/${sessions[0]?.session_id}`)

  assert.equal((await owner.call('POST', '/browsers', { name: 'late' })).status, 200)
})

test('defaults of projects are changed within the limit of the organization, by its own keys', async () => {
  const owner = await server.project()
  const key = newApiKey()
  await owner.addKey(key, owner.id as ProjectId)
  const change = (limit: unknown, init = {}) =>
    owner.call<OrgLimits & Failure>('PATCH', '/org/limits', { default_project_max_concurrent_sessions: limit }, init)

  assert.equal((await change(3)).body.default_project_max_concurrent_sessions, 3)
  assert.equal((await change(null)).body.default_project_max_concurrent_sessions, 3)
  assert.equal(
    (await owner.call<OrgLimits>('PATCH', '/org/limits', {})).body.default_project_max_concurrent_sessions,
    3,
  )
  assert.equal((await change(0)).body.default_project_max_concurrent_sessions, null)
  for (const limit of [6, -1, 1.5, '3']) {
    const { status, body } = await change(limit)
    assert.equal(status, 400)
    assert.match(body.message, /^default_project_max_concurrent_sessions: /)
  }
  assert.equal((await change(1, { key })).status, 403)
  assert.equal((await owner.call('GET', '/org/limits', undefined, { key })).status, 200)
})

test('creates are limited per minute over all servers, and responses report what is left', async () => {
  const owner = await server.project()
  const stranger = await server.project()
  const other = owner.on(sibling)
  const send = (who: TestProject) => who.call<Failure>('POST', '/browsers', { timeout_seconds: 'soon' })
  server.clock.advance(60 - ((server.clock.now().getTime() / 1000) % 60) + 20)

  const answers = await Promise.all(
    Array.from({ length: 42 }, (_value, index) => send(index % 2 === 0 ? owner : other)),
  )

  assert.deepEqual(counted(answers), { 400: 40, 429: 2 }, 'a request that fails counts, too')
  const left = answers.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')))
  assert.deepEqual(new Set(left), new Set(Array.from({ length: 40 }, (_value, index) => index)))
  for (const { headers, body } of answers.filter(({ status }) => status === 429)) {
    assert.deepEqual([body.code, headers.get('x-ratelimit-limit')], ['rate_limited', '40'])
    assert.equal(headers.get('retry-after'), '40', 'the seconds that are left of the minute')
  }
  assert.equal((await send(stranger)).status, 400, 'each organization has its own')
  assert.equal((await owner.call('GET', '/browsers')).headers.get('x-ratelimit-limit'), null)
  server.clock.advance(40)
  assert.equal((await send(other)).status, 400)
})

test('a server that is alone counts creates exactly, and goes on counting after a crash', async () => {
  await using stack = new AsyncDisposableStack()
  const alone = await TestServer.open({ limits })
  stack.defer(() => alone.close())
  const owner = await alone.project()
  const send = () => owner.call<Failure>('POST', '/browsers', { timeout_seconds: 'soon' })
  const noted = async () =>
    (await alone.database.selectFrom('request_counts').select('requests').execute())[0]?.requests
  alone.clock.advance(60 - ((alone.clock.now().getTime() / 1000) % 60) + 20)

  const before = await Promise.all(Array.from({ length: 30 }, send))
  while ((await noted()) !== 30) await delay(10)
  await alone.crash()
  await alone.start()
  const after = await Promise.all(Array.from({ length: 12 }, send))

  assert.deepEqual(counted([...before, ...after]), { 400: 40, 429: 2 })
  const left = [...before, ...after].map(({ headers }) => Number(headers.get('x-ratelimit-remaining')))
  assert.deepEqual(new Set(left), new Set(Array.from({ length: 40 }, (_value, index) => index)))
  alone.clock.advance(40)
  assert.equal((await send()).headers.get('x-ratelimit-remaining'), '39')
})

test('the limits of the organization are returned', async () => {
  const owner = await server.project()

  const { status, body } = await owner.call<OrgEntitlements>('GET', '/org/entitlements')

  const { max_concurrent_browsers, max_concurrent_invocations, default_max_concurrent_invocations_per_app } =
    body.limits
  assert.equal(status, 200)
  assert.deepEqual(
    [max_concurrent_browsers, max_concurrent_invocations, default_max_concurrent_invocations_per_app],
    [5, 100, 100],
  )
})
