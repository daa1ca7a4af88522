import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { BrowserPool } from '@berth/contract/browser-pools/browser-pool.ts'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import { newId, type PoolId, type SessionId } from '@berth/contract/common/ids.ts'
import type { Profile } from '@berth/contract/profiles/profile.ts'
import type { BrowserReplay } from '@berth/contract/replays/replay.ts'
import {
  type Webhook,
  type WebhookDelivery,
  type WebhookDeliveryDetails,
  WebhookEventType,
} from '@berth/contract/webhooks/webhook.ts'
import { sql } from 'kysely'
import { makeRecording } from '../../testing/recording.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'

/* Tests each event from its real cause to the row that is delivered. */

const recording = makeRecording(3)
const server = await TestServer.open()
after(() => server.close())

interface Told {
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

/** The events that the webhook receives, oldest first. */
async function told(owner: TestProject, { id }: Webhook): Promise<readonly Told[]> {
  const { body } = await owner.call<WebhookDelivery[]>('GET', `/webhooks/${id}/deliveries?limit=100`)
  const details = body.toReversed().map(async (delivery) => {
    const { body } = await owner.call<WebhookDeliveryDetails>('GET', `/webhooks/${id}/deliveries/${delivery.id}`)
    return body.payload as unknown as Told
  })
  return Promise.all(details)
}

async function withWebhook(types: readonly WebhookEventType[] | null = null) {
  const owner = await server.project()
  const body = { url: 'https://receiver.example', event_types: types }
  const { body: webhook } = await owner.call<Webhook>('POST', '/webhooks', body)
  return { owner, webhook }
}

const remove = (owner: TestProject, { session_id }: Browser) => owner.call('DELETE', `/browsers/${session_id}`)

async function until<Value>(read: () => Promise<Value | undefined>): Promise<Value> {
  const deadline = performance.now() + 60_000
  for (;;) {
    const value = await read()
    if (value !== undefined) return value
    assert.ok(performance.now() < deadline, 'it takes too long')
    await delay(10)
  }
}

const untilTold = (owner: TestProject, webhook: Webhook, type: string) =>
  until(async () => (await told(owner, webhook)).find((event) => event.type === type))

const untilFinished = (owner: TestProject, session: Browser) =>
  until(async () => {
    const { body } = await owner.call<BrowserReplay[]>('GET', `/browsers/${session.session_id}/replays`)
    return body.find(({ finished_at }) => finished_at)
  })

/** Starts a recording that ends when it is stopped, or that its recorder cuts off. */
async function record(owner: TestProject, session: Browser, isBroken: boolean): Promise<BrowserReplay> {
  const agent = server.host.agentOf(session.session_id as SessionId)
  const stream = new PassThrough()
  agent.record = () => stream
  agent.onEndRecording = () => stream.end()
  stream.write(recording)
  if (isBroken) stream.end()
  const { status, body } = await owner.call<BrowserReplay>('POST', `/browsers/${session.session_id}/replays`)
  assert.equal(status, 201, JSON.stringify(body))
  return body
}

async function makeDeployment(owner: TestProject) {
  const now = server.clock.now()
  const id = newId('deployment', now)
  const names = { status: 'queued', version: '1', is_forced: false, entrypoint: 'index.js' } as const
  const stored = { env_names: '[]', sealed_env: Buffer.alloc(1), source_checksum: '', source_blob: '' }
  await server.database
    .insertInto('deployments')
    .values({ id, project_id: owner.id, ...names, ...stored, created_at: now, updated_at: now } as never)
    .execute()
  const become = (status: 'running' | 'failed' | 'stopped') =>
    server.database
      .updateTable('deployments')
      .set({ status, status_reason: status === 'failed' ? 'x'.repeat(5_000) : null })
      .where('id', '=', id)
      .execute()
  return { id, become }
}

async function finishInvocation(owner: TestProject, status: 'succeeded' | 'failed'): Promise<void> {
  const now = server.clock.now()
  const { id: deployment_id } = await makeDeployment(owner)
  const id = newId('invocation', now)
  const names = { app_name: 'app', version: '1', action_name: 'act', server_id: 'test' }
  await server.database
    .insertInto('invocations')
    .values({ id, project_id: owner.id, deployment_id, ...names, status: 'running', created_at: now, deadline: now })
    .execute()
  await server.database.updateTable('invocations').set({ status, finished_at: now }).where('id', '=', id).execute()
}

type Cause = (owner: TestProject, webhook: Webhook) => Promise<unknown>

async function leased(owner: TestProject): Promise<{ readonly pool: BrowserPool; readonly browser: Browser }> {
  const { body: pool } = await owner.call<BrowserPool>('POST', '/browser_pools', { size: 1, headless: true })
  await server.services.poolFiller.fill(pool.id as PoolId, new AbortController().signal)
  const { body: browser } = await owner.call('POST', `/browser_pools/${pool.id}/acquire`, { name: 'leased' })
  return { pool, browser }
}

/** The cause of each type, and the known part of its data. */
const causes: Readonly<Record<WebhookEventType, readonly [Cause, Readonly<Record<string, unknown>>]>> = {
  'session.created': [(owner) => owner.session({ name: 'mine', tags: { a: 'b' } }), { name: 'mine', tags: { a: 'b' } }],
  'session.ended': [
    async (owner) => remove(owner, await owner.session({ name: 'over' })),
    { name: 'over', reason: 'deleted' },
  ],
  'session.acquired': [leased, { name: 'leased' }],
  'session.released': [
    async (owner) => {
      const { pool, browser } = await leased(owner)
      await owner.call('POST', `/browser_pools/${pool.id}/release`, { session_id: browser.session_id })
    },
    { name: 'leased' },
  ],
  'session.service_crashed': [
    async (owner, webhook) => {
      const { session_id } = await owner.session()
      const event = { event: 'service_crashed', service: 'chromium', detail: 'SIGKILL', at: Date.now() } as const
      server.host.agentOf(session_id as SessionId).events.append(event)
      await untilTold(owner, webhook, 'session.service_crashed')
    },
    { service: 'chromium' },
  ],
  'replay.started': [async (owner) => record(owner, await owner.session({}), false), {}],
  'replay.finished': [
    async (owner) => {
      const session = await owner.session({})
      const { replay_id } = await record(owner, session, false)
      await owner.call('POST', `/browsers/${session.session_id}/replays/${replay_id}/stop`)
    },
    { end_reason: 'stopped' },
  ],
  'replay.failed': [
    async (owner) => {
      const session = await owner.session({})
      await record(owner, session, true)
      await untilFinished(owner, session)
    },
    { end_reason: 'recorder_failed' },
  ],
  'profile.saved': [
    async (owner) => {
      await owner.call<Profile>('POST', '/profiles', { name: 'kept' })
      await remove(owner, await owner.session({ profile: { name: 'kept', save_changes: true } }))
    },
    { name: 'kept' },
  ],
  'deployment.running': [async (owner) => (await makeDeployment(owner)).become('running'), {}],
  'deployment.failed': [
    async (owner) => (await makeDeployment(owner)).become('failed'),
    { status_reason: 'x'.repeat(1_000) },
  ],
  'deployment.stopped': [async (owner) => (await makeDeployment(owner)).become('stopped'), {}],
  'invocation.succeeded': [(owner) => finishInvocation(owner, 'succeeded'), { action_name: 'act' }],
  'invocation.failed': [(owner) => finishInvocation(owner, 'failed'), { action_name: 'act' }],
}

for (const type of WebhookEventType.options) {
  const [cause, expected] = causes[type]
  test(`${type} is sent once, only to its own project, for its cause`, async () => {
    const { owner, webhook } = await withWebhook([type])
    const neighbour = await withWebhook()

    await cause(owner, webhook)

    const events = await told(owner, webhook)
    assert.deepEqual(
      events.map((event) => event.type),
      [type],
    )
    const data = events[0]?.data ?? {}
    const known = Object.fromEntries(Object.keys(expected).map((key) => [key, data[key]]))
    assert.deepEqual([known, data.project_id], [expected, owner.id])
    assert.deepEqual(await told(neighbour.owner, neighbour.webhook), [])
  })
}

const endings: Readonly<Record<string, (owner: TestProject, session: Browser) => Promise<unknown>>> = {
  timeout: async (owner, session) => {
    server.clock.advance(3600)
    await until(async () => {
      // What the agent has told of its idle time may not be in the row yet.
      await server.reap()
      const { status } = await owner.call('GET', `/browsers/${session.session_id}`)
      return status === 404 ? status : undefined
    })
  },
  machine_ended: async (owner, session) => {
    server.host.agentOf(session.session_id as SessionId).kill()
    await until(async () => {
      const { status } = await owner.call('GET', `/browsers/${session.session_id}`)
      return status === 404 ? status : undefined
    })
  },
  server_lost: async (_owner, session) => {
    const { database } = server
    await sql`insert into servers (id, up_since, seen_at) values
      ('test', now() - interval '10 minutes', now()), ('lost', now() - interval '10 minutes', now() - interval '2 minutes')
      on conflict (id) do update set up_since = excluded.up_since, seen_at = excluded.seen_at`.execute(database)
    await database
      .updateTable('sessions')
      .set({ driver_id: 'lost' })
      .where('id', '=', session.session_id as SessionId)
      .execute()
    await server.services.lostSessions.end()
  },
}

for (const [reason, end] of Object.entries(endings)) {
  test(`session.ended has the reason ${reason} when no caller ended the session`, async () => {
    const { owner, webhook } = await withWebhook(['session.ended'])
    const session = await owner.session({ headless: true, timeout_seconds: 10 })
    server.host.agentOf(session.session_id as SessionId).setState({ idle_since: server.clock.now().getTime() })

    await end(owner, session)

    const { data } = await untilTold(owner, webhook, 'session.ended')
    assert.deepEqual([data.session_id, data.reason], [session.session_id, reason])
  })
}

test('the end of an unleased browser sends no session.ended, and the final release of a leased one does', async () => {
  const { owner, webhook } = await withWebhook()
  const { pool, browser } = await leased(owner)
  await owner.call('POST', `/browser_pools/${pool.id}/release`, { session_id: browser.session_id, reuse: false })
  await server.services.poolFiller.fill(pool.id as PoolId, new AbortController().signal)
  await owner.call('DELETE', `/browser_pools/${pool.id}`)

  const events = await told(owner, webhook)

  assert.deepEqual(
    events.map(({ type, data }) => [type, data.reason]),
    [
      ['session.acquired', undefined],
      ['session.ended', 'released'],
    ],
  )
})

test('an event exists if and only if the transaction of its fact commits', async () => {
  const { owner, webhook } = await withWebhook(['session.ended'])
  const session = await owner.session()
  const end = server.database.transaction().execute(async (database) => {
    await database
      .updateTable('sessions')
      .set({ state: 'ending', deleted_at: new Date() })
      .where('id', '=', session.session_id as SessionId)
      .execute()
    throw new Error('the server is killed')
  })

  await assert.rejects(end)

  assert.deepEqual(await told(owner, webhook), [])
  await remove(owner, session)
  assert.equal((await told(owner, webhook)).length, 1)
})

test('a crash that the agent reports twice is sent once', async () => {
  const { owner, webhook } = await withWebhook(['session.service_crashed'])
  const { session_id } = await owner.session()
  const { events } = server.host.agentOf(session_id as SessionId)
  events.append({ event: 'service_crashed', service: 'chromium', detail: 'SIGKILL', at: Date.now() })
  await untilTold(owner, webhook, 'session.service_crashed')
  // Simulates a server that is killed before it acknowledges the event.
  await server.database.transaction().execute((database) =>
    sql`select record_webhook_event(project_id, 'session.service_crashed', now(), '{}', ${`service_crashed ${session_id} 1`})
      from sessions where id = ${session_id}`.execute(database),
  )

  assert.equal((await told(owner, webhook)).length, 1)
})

test('a disabled webhook receives nothing, and the delete of a webhook does not affect sessions', async () => {
  const { owner, webhook } = await withWebhook()
  await owner.call('PATCH', `/webhooks/${webhook.id}`, { enabled: false })
  await owner.session()
  assert.deepEqual(await told(owner, webhook), [])
  await owner.call('PATCH', `/webhooks/${webhook.id}`, { enabled: true })
  const sessions = await Promise.all(Array.from({ length: 10 }, () => owner.session()))

  const ends = sessions.map((session) => remove(owner, session))
  const deleted = await owner.call('DELETE', `/webhooks/${webhook.id}`)

  assert.equal(deleted.status, 204)
  assert.deepEqual(
    (await Promise.all(ends)).map(({ status }) => status),
    Array(10).fill(204),
  )
})
