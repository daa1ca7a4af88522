import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Invocation } from '@berth/contract/apps/app.ts'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { DeploymentId, InvocationId, ProjectId } from '@berth/contract/common/ids.ts'
import { sql } from 'kysely'
import { TestServer } from '../../../testing/server-test.ts'
import { TestApps } from '../../../testing/test-apps.ts'
import { DeploymentStore } from '../deployments/deployment-store.ts'

const server = await TestServer.open({ limits: { maxInvocations: 6, maxInvocationsPerApp: 2 } })
after(() => server.close())
const apps = new TestApps(server)

const invocationRules: readonly (readonly [what: string, body: object, status: number, rule: RegExp])[] = [
  ['an unknown app', { app_name: 'none', action_name: 'act' }, 404, /no app none/],
  ['an unknown version', { app_name: 'app', action_name: 'act', version: '7' }, 404, /version 7/],
  ['an unknown action', { app_name: 'app', action_name: 'none' }, 404, /no action none/],
  ['a payload that is no JSON', { app_name: 'app', action_name: 'act', payload: '{' }, 400, /^payload: must be JSON/],
  [
    'a payload that is too long',
    { app_name: 'app', action_name: 'act', payload: JSON.stringify('é'.repeat(2_250_000)) },
    400,
    /^payload: .*4500000/,
  ],
  [
    'a timeout without async',
    { app_name: 'app', action_name: 'act', async_timeout_seconds: 60 },
    400,
    /^async_timeout_seconds: needs async/,
  ],
  [
    'a timeout that is too short',
    { app_name: 'app', action_name: 'act', async: true, async_timeout_seconds: 9 },
    400,
    /^async_timeout_seconds: /,
  ],
  [
    'a timeout that is too long',
    { app_name: 'app', action_name: 'act', async: true, async_timeout_seconds: 3601 },
    400,
    /^async_timeout_seconds: /,
  ],
]
test('rejects invalid invocations with the field and the rule', async () => {
  const project = await server.project()
  await apps.serving(project, 'app')

  for (const [what, body, status, rule] of invocationRules) {
    const answer = await project.call<{ message: string }>('POST', '/invocations', body)
    assert.equal(answer.status, status, what)
    assert.match(answer.body.message, rule, what)
  }
})

test('an app, a project and an organization have limits of concurrent invocations', async () => {
  const project = await server.project()
  await project.call('PATCH', `/org/projects/${project.id}/limits`, { max_concurrent_invocations: 3 })
  const { body: sibling } = await project.call<{ id: ProjectId }>('POST', '/org/projects', { name: 'sibling' })
  const [one, two] = [await apps.serving(project, 'one'), await apps.serving(project, 'two')]
  const invoke = (app_name: string) =>
    project.call<{ message: string }>('POST', '/invocations', { app_name, action_name: 'act', async: true })
  const fill = async (deployment: DeploymentId, app: string, count: number, project_id = project.id) => {
    for (let made = 0; made < count; made += 1) await apps.running(project, deployment, app, { project_id })
  }

  await fill(one.id, 'one', 2)
  const ofApp = await invoke('one')
  await fill(two.id, 'two', 1)
  const ofProject = await invoke('two')
  await fill(two.id, 'elsewhere', 3, sibling.id)
  const ofOrganization = await invoke('two')

  const all = [ofApp, ofProject, ofOrganization]
  assert.deepEqual(
    all.map(({ status, headers }) => [status, headers.get('retry-after')]),
    all.map(() => [429, '2']),
  )
  assert.deepEqual(
    all.map(({ body }) => /^The (app|project|organization) has (\d) invocations/.exec(body.message)?.slice(1)),
    [
      ['app', '2'],
      ['project', '3'],
      ['organization', '6'],
    ],
  )
  assert.equal((await project.call<Invocation[]>('GET', '/invocations')).body.length, 3)
})

test('an invocation is found by a unique prefix of its id', async () => {
  const project = await server.project()
  const { id } = await apps.serving(project, 'app')
  const [first] = [await apps.running(project, id, 'app'), await apps.running(project, id, 'app')]
  const get = (ref: string) => project.call<Invocation>('GET', `/invocations/${ref}`)

  assert.equal((await get(first.id.slice(0, 23))).body.id, first.id)
  assert.equal((await get('inv')).status, 404)
  const { body } = await project.call<Invocation[]>('GET', `/invocations?deployment_id=${id}&since=5m&limit=1`)
  assert.equal(body.length, 1)
})

test('invocations are listed newest first, by each of their fields', async () => {
  const project = await server.project()
  const [one, two] = [await apps.serving(project, 'one'), await apps.serving(project, 'two', 'v2')]
  const older = new Date(server.clock.now().getTime() - 3_600_000)
  const first = await apps.running(project, one.id, 'one', { action_name: 'first', created_at: older })
  const second = await apps.running(project, two.id, 'two', { version: 'v2', action_name: 'Second' })
  await project.call('PATCH', `/invocations/${second.id}`, { status: 'succeeded', output: '1' })
  const list = async (query: string) => {
    const { body } = await project.call<Invocation[]>('GET', `/invocations?${query}`)
    return body.map(({ id }) => id)
  }

  const found: Readonly<Record<string, readonly InvocationId[]>> = {
    '': [second.id, first.id],
    'limit=1': [second.id],
    'limit=1&offset=1': [first.id],
    'app_name=one': [first.id],
    'version=v2': [second.id],
    'action_name=first': [first.id],
    [`deployment_id=${two.id}`]: [second.id],
    'status=running': [first.id],
    'status=succeeded': [second.id],
    'since=30m': [second.id],
    [`since=${older.toISOString()}`]: [second.id, first.id],
    [`query=${first.id}`]: [first.id],
    'query=TWO': [second.id],
    'query=seco': [second.id],
    'app_name=one&status=succeeded': [],
  }
  for (const [query, ids] of Object.entries(found)) assert.deepEqual(await list(query), ids, query)
})

test('invocations of a replaced deployment continue, and its key is deleted after the last one', async () => {
  const project = await server.project()
  const before = await apps.serving(project, 'app')
  const stored = () => new DeploymentStore(server.database).get(before.id)
  const { KERNEL_API_KEY: key } = await server.services.appEnvironment.of(await stored())
  const answer = async () => (await fetch(`${server.url}/apps`, { headers: { authorization: `Bearer ${key}` } })).status
  const invocation = await apps.running(project, before.id, 'app')

  const { stopped } = await apps.serving(project, 'app')
  await server.services.invocationRunner.failOverdue()
  assert.deepEqual(stopped, [before.id])
  assert.equal(await answer(), 200)

  const { status } = await project.call('PATCH', `/invocations/${invocation.id}`, { status: 'succeeded', output: '1' })
  assert.equal(status, 200)
  server.clock.advance(2) // Keys are cached for a second.
  assert.equal(await answer(), 401)
})

test('of two ends of an invocation, the first one counts', async () => {
  const project = await server.project()
  const { id } = await apps.serving(project, 'app')
  const invocation = await apps.running(project, id, 'app')
  const patch = (status: string, output?: string) =>
    project.call<Invocation>('PATCH', `/invocations/${invocation.id}`, { status, ...(output && { output }) })

  const all = await Promise.all([patch('failed'), patch('succeeded', '{"a":1}')])

  assert.deepEqual(all.map(({ status }) => status).toSorted(), [200, 400])
})

test('the active sessions of an invocation are listed as sessions are', async () => {
  const project = await server.project()
  const { id } = await apps.serving(project, 'app')
  const invocation = await apps.running(project, id, 'app')
  const create = async (fields: object) =>
    (await project.call<Browser>('POST', '/browsers', { headless: true, ...fields })).body
  const own = await create({ invocation_id: invocation.id, name: 'own', tags: { a: '1' } })
  const ended = await create({ invocation_id: invocation.id })
  await create({})
  await project.call('DELETE', `/browsers/${ended.session_id}`)

  const { body } = await project.call<{ browsers: Browser[] }>('GET', `/invocations/${invocation.id}/browsers`)

  const withoutTokens = (browser: Browser) =>
    JSON.parse(JSON.stringify(browser).replaceAll(/jwt=[^"&]+/g, 'jwt=')) as Browser
  const { body: record } = await project.call<Browser>('GET', `/browsers/${own.session_id}`)
  assert.deepEqual(body.browsers.map(withoutTokens), [withoutTokens(record)])
})

test('a session is assigned to an invocation only by its whole id', async () => {
  const project = await server.project()
  const { id } = await apps.serving(project, 'app')
  const invocation = await apps.running(project, id, 'app')

  for (const named of [invocation.id.slice(0, 12), 'none']) {
    const { status, body } = await project.call('POST', '/browsers', { headless: true, invocation_id: named })
    assert.deepEqual([status, (body as unknown as { code: string }).code], [404, 'invocation_not_found'])
  }
  assert.deepEqual((await project.call('GET', '/browsers')).body, [])
})

test('a cancellation ends the sessions of the invocation, and later sessions are rejected', async () => {
  const project = await server.project()
  const { id } = await apps.serving(project, 'app')
  const invocation = await apps.running(project, id, 'app')
  const create = () => project.call('POST', '/browsers', { headless: true, invocation_id: invocation.id })
  const browsers = () => project.call<{ browsers: unknown[] }>('GET', `/invocations/${invocation.id}/browsers`)
  assert.equal((await create()).status, 200)
  assert.equal((await browsers()).body.browsers.length, 1)

  await project.call('PATCH', `/invocations/${invocation.id}`, { status: 'failed' })

  assert.deepEqual((await browsers()).body, { browsers: [] })
  assert.equal((await create()).status, 400)
  assert.deepEqual((await project.call('GET', '/browsers')).body, [])
})

test('unfinished invocations of a server fail at its next start, or long after their timeout', async () => {
  const project = await server.project()
  const { id } = await apps.serving(project, 'app')
  const [own, lost] = [
    await apps.running(project, id, 'app', { server_id: 'test' }),
    await apps.running(project, id, 'app', { server_id: 'lost' }),
  ]
  const statusOf = async (of: { id: InvocationId }) =>
    (await project.call<Invocation>('GET', `/invocations/${of.id}`)).body.status

  await server.services.invocationRunner.recover()
  assert.deepEqual([await statusOf(own), await statusOf(lost)], ['failed', 'running'])
  server.clock.advance(961)
  await server.services.invocationRunner.failOverdue()
  assert.equal(await statusOf(lost), 'failed')
})

test('invocations of a lost server fail a minute later, and their sessions end', async () => {
  const project = await server.project()
  const { id } = await apps.serving(project, 'app')
  const seen = (name: string, seconds: number) =>
    sql`insert into servers (id, up_since, seen_at)
      values (${name}, now() - interval '10 minutes', now() - make_interval(secs => ${seconds}))`.execute(
      server.database,
    )
  await server.database.deleteFrom('servers').execute()
  for (const [name, seconds] of [
    ['test', 1],
    ['there', 50],
    ['gone', 70],
  ] as const)
    await seen(name, seconds)
  const kept = await apps.running(project, id, 'app', { server_id: 'there' })
  const lost = await apps.running(project, id, 'app', { server_id: 'gone' })
  await project.call('POST', '/browsers', { headless: true, invocation_id: lost.id })

  await server.services.invocationRunner.failOverdue()

  const of = async (ref: string) => (await project.call<Invocation>('GET', `/invocations/${ref}`)).body
  assert.deepEqual([(await of(lost.id)).status, (await of(kept.id)).status], ['failed', 'running'])
  assert.equal((await of(lost.id)).status_reason, 'The server that ran it has stopped.')
  assert.deepEqual((await project.call('GET', '/browsers')).body, [])
})

test('the sessions of an invocation are deleted together, as often as asked', async () => {
  const project = await server.project()
  const { id } = await apps.serving(project, 'app')
  const invocation = await apps.running(project, id, 'app')
  await project.call('POST', '/browsers', { headless: true, invocation_id: invocation.id })

  for (let count = 0; count < 2; count += 1) {
    const { status } = await project.call('DELETE', `/invocations/${invocation.id}/browsers`)
    assert.equal(status, 204)
  }
  assert.deepEqual((await project.call('GET', '/browsers')).body, [])
})
