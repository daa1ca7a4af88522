import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Deployment, DeploymentEvent, Invocation, InvocationEvent } from '@berth/contract/apps/app.ts'
import type { DeploymentId, InvocationId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { zip } from '@berth/runtime/testing/zip.ts'
import { sql } from 'kysely'
import { buildDeployment } from '../../../jobs/declared-jobs.ts'
import { startJobs } from '../../../jobs/start-jobs.ts'
import type { TestProject, TestServer } from '../../../testing/server-test.ts'
import { SharedServers } from '../../../testing/shared-servers.ts'
import { DeploymentStore } from '../deployments/deployment-store.ts'

/* Builds and invocations on full hosts. The fake machines run no apps: only the host on which one starts matters. */

const servers = await SharedServers.open()
after(() => servers.close())
const { first, second } = servers
const deployments = new DeploymentStore(first.database)
// The other server takes over what it receives. The first one runs no jobs of its own.
await startJobs(second.jobs, second.services, { buildsAtOnce: 0 })

const full = () => new BerthError('capacity_exhausted', { reason: 'the fake host is full.' })
const waits = /^No host has room for the machine of the app now/
/** The error of the fake machine shows that it has started. */
const hasRun = 'It could not be run because of a problem of this service.'

async function deploy(project: TestProject): Promise<DeploymentId> {
  const body = new FormData()
  body.set('file', new Blob([new Uint8Array(zip({ name: 'index.ts', content: 'export {}' }))]))
  body.set('entrypoint_rel_path', 'index.ts')
  const headers = { authorization: `Bearer ${project.key}` }
  const response = await fetch(`${first.url}/deployments`, { method: 'POST', headers, body })
  return ((await response.json()) as Deployment).id as DeploymentId
}

async function serving(project: TestProject): Promise<void> {
  const id = await deploy(project)
  const deployment = await deployments.claim(id, first.clock.now())
  assert.ok(deployment)
  await deployments.publish(deployment, [{ name: 'app', actions: ['act'] }], first.clock.now())
}

const invoke = (project: TestProject, fields: object = {}) =>
  project.call<Invocation & { code: string }>('POST', '/invocations', {
    app_name: 'app',
    action_name: 'act',
    ...fields,
  })

async function* eventsOf<Event>(project: TestProject, path: string): AsyncGenerator<Event> {
  const response = await fetch(`${first.url}${path}`, { headers: { authorization: `Bearer ${project.key}` } })
  let text = ''
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk
    const lines = text.split('\n')
    text = lines.pop() ?? ''
    for (const line of lines) if (line.startsWith('data: ')) yield JSON.parse(line.slice('data: '.length)) as Event
  }
}

async function waitForEnd(project: TestProject, id: string): Promise<Invocation> {
  for (;;) {
    const { body } = await project.call<Invocation>('GET', `/invocations/${id}`)
    if (body.finished_at !== null) return body
    await delay(20)
  }
}

async function serverOf(id: string): Promise<string> {
  const row = await first.database.selectFrom('invocations').select(['id', 'server_id']).execute()
  return row.find((invocation) => invocation.id === id)?.server_id ?? assert.fail(`there is no ${id}`)
}

/** While no other server reports room. */
async function alone<Result>(work: () => Promise<Result>): Promise<Result> {
  const say = (address: string | null) =>
    first.database.updateTable('servers').set({ address }).where('id', '=', 'second').execute()
  const { address } = await first.database
    .selectFrom('servers')
    .select('address')
    .where('id', '=', 'second')
    .executeTakeFirstOrThrow()
  await say(null)
  try {
    return await work()
  } finally {
    await say(address)
  }
}

test('a synchronous invocation on a full host runs on another one, as one invocation', async () => {
  const project = await first.project()
  await serving(project)
  first.host.failNextStart(full())

  const { status, body } = await invoke(project, { payload: '"größe"' })

  assert.equal(status, 200)
  assert.equal(body.status_reason, hasRun)
  const { body: all } = await project.call<Invocation[]>('GET', '/invocations')
  assert.deepEqual(
    all.map(({ id, payload }) => [id, payload]),
    [[body.id, '"größe"']],
  )
  assert.equal(await serverOf(body.id), 'second')
})

test('a synchronous invocation is rejected when no host has room, and leaves nothing', async () => {
  const project = await first.project()
  await serving(project)
  first.host.failNextStart(full())
  second.host.failNextStart(full())

  const refused = await invoke(project)

  assert.deepEqual([refused.status, refused.body.code], [529, 'capacity_exhausted'])
  assert.equal(refused.headers.get('x-should-retry'), 'true')
  assert.deepEqual((await project.call('GET', '/invocations')).body, [])
})

test('an asynchronous invocation on a full host is handed over to another one', async () => {
  const project = await first.project()
  await serving(project)
  first.host.failNextStart(full())

  const { status, body } = await invoke(project, { async: true })

  assert.deepEqual([status, body.status], [202, 'queued'])
  assert.equal((await waitForEnd(project, body.id)).status_reason, hasRun)
  assert.equal(await serverOf(body.id), 'second')
})

test('an asynchronous invocation waits while no host has room, logs it, and runs when there is some', async () => {
  const project = await first.project()
  await serving(project)
  first.host.failNextStart(full())

  const { ended, events, id } = await alone(async () => {
    const { body } = await invoke(project, { async: true })
    const events = Array.fromAsync(eventsOf<InvocationEvent>(project, `/invocations/${body.id}/events`))
    return { id: body.id, ended: await waitForEnd(project, body.id), events: await events }
  })

  assert.equal(ended.status_reason, hasRun)
  assert.ok(events.some((event) => event.event === 'log' && waits.test(event.message)))
  assert.equal(await serverOf(id), 'test')
})

/** Makes an invocation wait on the first server. */
async function waiting(project: TestProject): Promise<string> {
  for (let count = 0; count < 3; count += 1) first.host.failNextStart(full())
  const { body } = await invoke(project, { async: true })
  for await (const event of eventsOf<InvocationEvent>(project, `/invocations/${body.id}/events`)) {
    if (event.event === 'log' && waits.test(event.message)) return body.id
  }
  assert.fail('it does not wait')
}

const ends: Readonly<Record<string, (project: TestProject, id: string) => Promise<unknown>>> = {
  'a cancel': (project, id) => project.call('PATCH', `/invocations/${id}`, { status: 'failed' }),
  'a stop of its server': () => first.services.invocationRunner.close(),
}
for (const [what, end] of Object.entries(ends)) {
  test(`${what} ends an invocation that waits for room`, async () => {
    const project = await first.project()
    await serving(project)

    const { status } = await alone(async () => {
      const id = await waiting(project)
      await end(project, id)
      return waitForEnd(project, id)
    })

    assert.equal(status, 'failed')
    while (first.host.takeNextStart());
  })
}

test('of two servers, only the one that an invocation is assigned to runs it, once', async () => {
  const project = await first.project()
  await serving(project)
  const id = await alone(() => waiting(project))
  while (first.host.takeNextStart());
  const of = (server: TestServer) => server.services.invocationRunner.take(id as InvocationId)

  await Promise.all([of(second), of(second), of(first)])

  assert.equal((await waitForEnd(project, id)).status_reason, hasRun)
  assert.equal(await serverOf(id), 'test')
})

test('a build waits until its host has room, logs it, and reports its failure before its state', async () => {
  const project = await first.project()
  const id = await deploy(project)
  first.host.failNextStart(full())
  const events = Array.fromAsync(eventsOf<DeploymentEvent>(project, `/deployments/${id}/events`))

  await alone(() => first.services.builds.run(id, new AbortController().signal))

  const told = await events
  assert.ok(told.some((event) => event.event === 'log' && waits.test(event.message)))
  const [error, state] = told.slice(-2)
  assert.ok(error?.event === 'error' && state?.event === 'deployment_state')
  assert.equal(state.deployment.status, 'failed')
  assert.equal(error.error.message, state.deployment.status_reason)
  assert.doesNotMatch(error.error.message, /the fake host is full/)
})

/** Makes this server start a build, as if it had taken its job. */
async function build(server: TestServer, id: DeploymentId): Promise<void> {
  await sql`delete from jobs.job where singleton_key = ${id}`.execute(server.database)
  await server.services.builds.run(id, new AbortController().signal)
}

test('a build on a full host moves to a server with room, and that attempt does not count', async () => {
  const project = await first.project()
  const id = await deploy(project)
  first.host.failNextStart(full())
  const started = Promise.withResolvers<void>()
  second.host.onStart = async ({ isApp }) => void (isApp && started.resolve())

  await build(first, id)
  assert.equal((await deployments.get(id)).attempts, 0)
  await second.jobs.work(buildDeployment, ({ deploymentId, wait }, signal) =>
    second.services.builds.run(deploymentId, signal, wait),
  )
  await started.promise

  // The fake machine builds nothing.
  for await (const event of eventsOf<DeploymentEvent>(project, `/deployments/${id}/events`)) {
    if (event.event === 'log') assert.doesNotMatch(event.message, waits)
  }
  const { status, attempts } = await deployments.get(id)
  assert.deepEqual([status, attempts], ['failed', 1])
})
