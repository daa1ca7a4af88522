import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import type { OtlpDestination } from '@berth/contract/telemetry/otlp-destination-endpoints.ts'
import { sql } from 'kysely'
import { newApiKey } from '../../access/secrets.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'
import { OtlpCollector } from '../../testing/services/otlp-collector.ts'

const collector = await OtlpCollector.open()
const other = await OtlpCollector.open()
const server = await TestServer.open({ egressAllow: [`127.0.0.1:${collector.port}`, `127.0.0.1:${other.port}`] })
after(async () => {
  await server.services.otlpExporter.close()
  await server.close()
  await collector[Symbol.asyncDispose]()
  await other[Symbol.asyncDispose]()
})

interface Failure {
  readonly code: string
  readonly message: string
}

async function create(owner: TestProject, body: object = {}): Promise<OtlpDestination> {
  const answer = await owner.call<OtlpDestination>('POST', '/telemetry/destinations', {
    name: 'main',
    endpoint: collector.url,
    ...body,
  })
  assert.equal(answer.status, 201, JSON.stringify(answer.body))
  return answer.body
}

const exporting = (owner: TestProject, destination: object): Promise<Browser> =>
  owner.session({ headless: true, telemetry: { enabled: true, export: { otlp: { destination } } } })

function tell({ session_id }: Browser, count: number): void {
  const { telemetry } = server.host.agentOf(session_id as SessionId)
  const ts = server.clock.now().getTime() * 1000 + 123
  for (let index = 0; index < count; index++) {
    telemetry.append({
      ts,
      type: 'page_crashed',
      category: 'page',
      source: { kind: 'cdp', event: 'Target.targetCrashed' },
      data: { target_id: `T${index}`, big: 'x'.repeat(100) },
    })
  }
}

async function logsOf(session: Browser, count: number, from = collector) {
  for (let tries = 0; tries < 600; tries++) {
    const logs = from.logs.filter(({ attributes }) => attributes['browser.session.id'] === session.session_id)
    if (logs.length >= count) return logs
    await delay(25)
  }
  return assert.fail(`fewer than ${count} logs have come`)
}

test('a destination is created, found by id and name, listed, changed and deleted', async () => {
  const owner = await server.project()
  const made = await create(owner, { headers: { 'X-Key': 'one', Accept: 'two' }, description: 'ours' })
  assert.deepEqual([made.headers, made.description], [{ 'x-key': '', accept: '' }, 'ours'])

  for (const name of [made.id, 'main', 'MAIN']) {
    assert.deepEqual((await owner.call('GET', `/telemetry/destinations/${name}`)).body, made)
  }
  const second = await create(owner, { name: 'second', endpoint: 'https://collector.example/base/' })
  for (const [query, expected] of [
    ['', [second, made]],
    ['?name=Main', [made]],
    ['?query=collector.ex', [second]],
    [`?query=${made.id}`, [made]],
    ['?limit=1', [second]],
  ] as const) {
    assert.deepEqual((await owner.call('GET', `/telemetry/destinations${query}`)).body, expected, query)
  }
  const change = { headers: { 'x-key': null, 'X-New': 'three' }, description: '' }
  const changed = await owner.call<OtlpDestination>('PATCH', `/telemetry/destinations/main`, change)
  assert.deepEqual([changed.body.headers, changed.body.description], [{ accept: '', 'x-new': '' }, undefined])
  assert.equal(
    (await owner.call<Failure>('PATCH', `/telemetry/destinations/second`, { name: 'MAIN' })).body.code,
    'otlp_destination_name_taken',
  )
  assert.equal((await owner.call('DELETE', `/telemetry/destinations/main`)).status, 204)
  for (const method of ['GET', 'PATCH', 'DELETE'] as const) {
    const { status, body } = await owner.call<Failure>(
      method,
      `/telemetry/destinations/${made.id}`,
      method === 'PATCH' ? {} : undefined,
    )
    assert.deepEqual([status, body.code], [404, 'otlp_destination_not_found'], method)
  }
})

test('an invalid value is a 400 that names the field', async () => {
  const owner = await server.project()
  const made = await create(owner)

  for (const [field, body] of [
    ['name', { name: made.id }],
    ['endpoint', { endpoint: 'ftp://collector.example' }],
    ['endpoint', { endpoint: 'https://collector.example/?a=b' }],
    ['endpoint', { endpoint: 'https://collector.example/v1/logs' }],
    ['endpoint', { endpoint: 'https://user:secret@collector.example' }],
    ['endpoint', { endpoint: 'http://127.0.0.1:9' }],
    ['endpoint', { endpoint: 'http://[::ffff:10.0.0.1]' }],
    ['endpoint', { endpoint: 'http://localhost' }],
    ['endpoint', { endpoint: 'http://169.254.169.254' }],
    ['headers', { headers: { A: '1', a: '2' } }],
    ['headers.host', { headers: { host: 'x' } }],
    ['headers.x', { headers: { x: 'line\nbreak' } }],
    ['headers', { headers: { x: 'x'.repeat(8_192) } }],
  ] as const) {
    for (const [method, address] of [
      ['POST', '/telemetry/destinations'],
      ['PATCH', `/telemetry/destinations/${made.id}`],
    ] as const) {
      const whole = method === 'POST' ? { name: 'new', endpoint: collector.url, ...body } : body
      const { status, body: refused } = await owner.call<Failure>(method, address, whole)
      assert.deepEqual([status, refused.message?.split(':')[0]], [400, field], `${method} ${JSON.stringify(body)}`)
    }
  }
})

test('a key of one project can list and select destinations, but not change them', async () => {
  const owner = await server.project()
  await create(owner)
  const key = newApiKey()
  await owner.addKey(key, owner.id as ProjectId)

  for (const [method, address, body, expected] of [
    ['GET', '/telemetry/destinations', undefined, 200],
    ['GET', `/telemetry/destinations/main`, undefined, 200],
    ['POST', '/telemetry/destinations', { name: 'x', endpoint: collector.url }, 403],
    ['PATCH', `/telemetry/destinations/main`, {}, 403],
    ['DELETE', `/telemetry/destinations/main`, undefined, 403],
  ] as const) {
    assert.equal((await owner.call(method, address, body, { key })).status, expected, `${method} ${address}`)
  }
})

test('a session exports its events with the headers of its destination, and follows its changes', async () => {
  const owner = await server.project()
  const made = await create(owner, { headers: { Authorization: 'Bearer secret of the collector' } })
  const session = await exporting(owner, { name: 'main' })
  assert.deepEqual(session.telemetry?.export, { otlp: { enabled: true, destination: made.id } })
  collector.refusals.push(503, 429)

  tell(session, 600)

  const [first] = await logsOf(session, 600)
  const ts = BigInt(server.clock.now().getTime()) * 1_000_000n + 123_000n
  assert.deepEqual(first, {
    eventName: 'page_crashed',
    severity: 'ERROR',
    timeNanoseconds: ts,
    attributes: {
      'browser.session.id': session.session_id,
      'berth.telemetry.seq': 1,
      'berth.telemetry.type': 'page_crashed',
      'berth.telemetry.category': 'page',
      'berth.telemetry.source.kind': 'cdp',
      'berth.telemetry.source.event': 'Target.targetCrashed',
    },
  })
  const request = collector.requests.at(-1)
  assert.deepEqual([request?.path, request?.headers.authorization], ['/v1/logs', 'Bearer secret of the collector'])
  const { rows } = await sql<{ row: string }>`select otlp_destinations::text as row from otlp_destinations`.execute(
    server.database,
  )
  assert.ok(!rows.some(({ row }) => row.includes('secret of the collector')), 'headers are sealed')

  assert.equal((await owner.call('PATCH', `/telemetry/destinations/main`, { endpoint: other.url })).status, 200)
  for (let round = 0; other.logs.length === 0; round++) {
    assert.ok(round < 100, 'the change is not followed')
    tell(session, 1)
    await delay(250)
  }
})

test('a destination reports the results of its exports', async () => {
  const owner = await server.project()
  const made = await create(owner)
  const session = await exporting(owner, { name: 'main' })
  const health = async (isReached: (destination: OtlpDestination) => boolean) => {
    for (let tries = 0; tries < 1_200; tries++) {
      const { body } = await owner.call<OtlpDestination>('GET', `/telemetry/destinations/${made.id}`)
      if (isReached(body)) return body
      await delay(25)
    }
    return assert.fail('the health does not change')
  }
  collector.refusals.push(401)

  tell(session, 1)
  const failed = await health(({ consecutive_failures }) => consecutive_failures === 1)
  tell(session, 1)
  const restored = await health(({ consecutive_failures }) => consecutive_failures === 0)

  const now = server.clock.now().toISOString()
  assert.deepEqual(
    [made.consecutive_failures, made.last_error, made.last_error_at, made.last_export_at],
    [0, undefined, undefined, undefined],
  )
  assert.deepEqual([failed.last_error_at, failed.last_export_at], [now, undefined])
  assert.ok(failed.last_error, 'the reason is told')
  assert.deepEqual([restored.last_error, restored.last_export_at], [failed.last_error, now])
  assert.equal(restored.updated_at, made.updated_at)
})

test('the destination is bound at creation, kept by updates, and cannot be deleted meanwhile', async () => {
  const owner = await server.project()
  const stranger = await server.project()
  const made = await create(owner)
  const session = await exporting(owner, { id: made.id })
  const update = async (telemetry: object) =>
    (await owner.call<Browser>('PATCH', `/browsers/${session.session_id}`, { telemetry })).body.telemetry

  assert.equal(await update({ enabled: false }), null)
  assert.equal((await update({ enabled: true }))?.export?.otlp?.destination, made.id)
  const inUse = await owner.call<Failure>('DELETE', `/telemetry/destinations/main`)
  assert.deepEqual([inUse.status, inUse.body.code], [409, 'otlp_destination_in_use'])
  await owner.call('DELETE', `/browsers/${session.session_id}`)
  assert.equal((await owner.call('DELETE', `/telemetry/destinations/main`)).status, 204)

  const foreign = await create(stranger, { name: 'theirs' })
  for (const [telemetry, status] of [
    [{ enabled: true, export: { otlp: { destination: { id: foreign.id } } } }, 404],
    [{ enabled: true, export: { otlp: { destination: { name: 'theirs' } } } }, 404],
    [{ enabled: false, export: { otlp: { destination: { name: 'theirs' } } } }, 400],
    [{ enabled: true, export: { otlp: { enabled: true } } }, 400],
  ] as const) {
    const answer = await owner.call('POST', '/browsers', { headless: true, telemetry })
    assert.equal(answer.status, status, JSON.stringify(telemetry))
  }
})

test('a collector that never responds delays no session, fills a bounded queue, and receives the queued events when it returns', async () => {
  const owner = await server.project()
  await create(owner, { endpoint: other.url })
  const session = await exporting(owner, { name: 'main' })
  other.hangs = true

  tell(session, 6_000)

  const stored = async () => {
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from telemetry_events where session_id = ${session.session_id}`.execute(server.database)
    return rows[0]?.count
  }
  for (let tries = 0; (await stored()) !== 6_000; tries++) {
    assert.ok(tries < 800, `${await stored()} events are stored`)
    await delay(25)
  }
  other.stopHanging()

  const numbers = () =>
    other.logs.flatMap(({ attributes }) =>
      attributes['browser.session.id'] === session.session_id ? [Number(attributes['berth.telemetry.seq'])] : [],
    )
  await untilTrue(() => numbers().length >= 4_096)
  tell(session, 1)
  await untilTrue(() => numbers().includes(6_001))
  const received = new Set(numbers())
  assert.ok(received.size < 5_000, `${received.size} of 6,000 have waited`)
  const waited = Array.from({ length: 4_096 }, (_, index) => index + 1)
  assert.deepEqual(
    waited.filter((seq) => !received.has(seq)),
    [],
    'the first ones wait, and none of them is lost',
  )
})

async function untilTrue(isTrue: () => boolean): Promise<void> {
  for (let tries = 0; !isTrue(); tries++) {
    assert.ok(tries < 2_400, 'it takes too long')
    await delay(25)
  }
}
