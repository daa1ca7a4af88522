import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import type { TelemetryEnvelope, TelemetryEvent } from '@berth/contract/telemetry/telemetry-event.ts'
import { sql } from 'kysely'
import { type TestProject, TestServer } from '../../testing/server-test.ts'

const server = await TestServer.open()
after(() => server.close())

interface Failure {
  readonly code: string
  readonly message: string
}

const everything = { enabled: true, browser: { console: { enabled: true }, network: { enabled: true } } }

const consoleEvent = (text: string): TelemetryEvent => ({
  ts: server.clock.now().getTime() * 1000,
  type: 'console_log',
  category: 'console',
  source: { kind: 'cdp', event: 'Runtime.consoleAPICalled' },
  data: { text },
})

const textsOf = (events: readonly TelemetryEnvelope[]) => events.map(({ event }) => event.data?.text)

async function observed(owner: TestProject): Promise<Browser> {
  return owner.session({ headless: true, telemetry: everything })
}

const agentOf = ({ session_id }: Browser) => server.host.agentOf(session_id as SessionId)

function tell(session: Browser, count: number, first = 1): void {
  for (let index = first; index < first + count; index++) agentOf(session).telemetry.append(consoleEvent(String(index)))
}

/** Resolves when the stream is open, so that it includes all later events. */
async function framesOf(owner: TestProject, path: string, headers: Record<string, string> = {}) {
  const leaving = new AbortController()
  const response = await fetch(`${server.url}${path}`, {
    headers: { ...(!path.includes('jwt=') && { authorization: `Bearer ${owner.key}` }), ...headers },
    signal: leaving.signal,
  })
  assert.equal(response.status, 200, path)
  return readFrames(response.body as ReadableStream<Uint8Array>, leaving)
}

async function* readFrames(body: ReadableStream<Uint8Array>, leaving: AbortController) {
  let unfinished = ''
  try {
    for await (const chunk of body.pipeThrough(new TextDecoderStream() as never) as unknown as AsyncIterable<string>) {
      const frames = `${unfinished}${chunk}`.split('\n\n')
      unfinished = frames.pop() ?? ''
      for (const frame of frames) {
        const [, id, data] = /^(?::[^\n]*\n)*id: (\d+)\ndata: (.*)$/.exec(frame) ?? []
        assert.ok(data, `no frame: ${frame}`)
        const envelope: TelemetryEnvelope = JSON.parse(data)
        assert.equal(Number(id), envelope.seq)
        yield envelope
      }
    }
  } finally {
    leaving.abort()
  }
}

async function take(frames: AsyncGenerator<TelemetryEnvelope>, count: number): Promise<readonly TelemetryEnvelope[]> {
  const taken: TelemetryEnvelope[] = []
  if (count > 0) for await (const frame of frames) if (taken.push(frame) === count) break
  return taken
}

async function untilStored(session: Browser, count: number): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    const { rows } = await sql<{ count: number }>`
      select count(*) as count from telemetry_events where session_id = ${session.session_id}`.execute(server.database)
    if ((rows[0]?.count ?? 0) >= count) return
    await delay(25)
  }
  assert.fail(`fewer than ${count} events are stored`)
}

const list = (owner: TestProject, session: Browser, query: string) =>
  owner.call<readonly TelemetryEnvelope[]>('GET', `/browsers/${session.session_id}/telemetry/events?${query}`)

test('the agent captures the settings of the create and of each update', async () => {
  const owner = await server.project()
  const session = await observed(owner)
  const update = (telemetry: unknown) => owner.call('PATCH', `/browsers/${session.session_id}`, { telemetry })

  await update({ browser: { page: { enabled: true }, captcha: { enabled: false } } })
  await update({ browser: { control: { cdp: { excluded_methods: ['Page.navigate'] } } } })
  await update({ enabled: false })

  const first = ['control', 'connection', 'system', 'captcha', 'console', 'network']
  const second = ['control', 'connection', 'system', 'console', 'network', 'page']
  assert.deepEqual(agentOf(session).captures, [
    { categories: first, excluded_methods: [] },
    { categories: second, excluded_methods: [] },
    { categories: second, excluded_methods: ['Page.navigate'] },
    null,
  ])
  const silent = await owner.session()
  assert.deepEqual(agentOf(silent).captures, [], 'a session without telemetry costs its agent nothing')
})

test('a stream contains new events, or all, or those after an id, at both addresses', async () => {
  const owner = await server.project()
  const session = await observed(owner)
  const path = `/browsers/${session.session_id}/telemetry/stream`
  tell(session, 3)
  await untilStored(session, 3)
  const cases: readonly [string, Record<string, string>, readonly string[]][] = [
    [`${path}?replay=all`, {}, ['1', '2', '3', '4']],
    [path, { 'last-event-id': '2' }, ['3', '4']],
    [`${path}?replay=all`, { 'last-event-id': '2' }, ['3', '4']],
    [path, { 'last-event-id': '99' }, ['4']],
    [path, { 'last-event-id': 'abc' }, ['4']],
    [path, { 'last-event-id': '' }, ['4']],
    [`${path}?replay=some`, {}, ['4']],
  ]
  const { pathname, search } = new URL(session.cdp_ws_url.replace(/^ws/, 'http').replace('/cdp', '/telemetry/stream'))
  const open = [...cases, [`${pathname}${search}&replay=all`, {}, ['1', '2', '3', '4']] as const].map(
    async ([address, headers, expected]) => {
      const frames = await framesOf(owner, address, headers)
      return { expected, frames, told: `${address} ${JSON.stringify(headers)}` }
    },
  )
  const streams = await Promise.all(open)

  tell(session, 1, 4)

  for (const { expected, frames, told } of streams) {
    assert.deepEqual(textsOf(await take(frames, expected.length)), expected, told)
  }
})

test('a stream of some types contains only these, and resumes like any other', async () => {
  const owner = await server.project()
  const session = await observed(owner)
  const { telemetry } = agentOf(session)
  for (const type of ['console_log', 'console_error', 'console_log', 'console_error', 'network_idle'] as const) {
    telemetry.append({ ...consoleEvent(type), type })
  }
  await untilStored(session, 5)
  const path = `/browsers/${session.session_id}/telemetry/stream`

  for (const [query, headers, seqs] of [
    ['replay=all&type=console_error,network_idle', {}, [2, 4, 5]],
    ['type=console_error&type=network_idle', { 'last-event-id': '2' }, [4, 5]],
  ] as const) {
    const events = await take(await framesOf(owner, `${path}?${query}`, headers), seqs.length)
    assert.deepEqual(
      events.map(({ seq }) => seq),
      seqs,
    )
  }
})

test('a reader that disconnects and resumes receives every event once', async () => {
  const owner = await server.project()
  const session = await observed(owner)
  const path = `/browsers/${session.session_id}/telemetry/stream`
  const all = take(await framesOf(owner, `${path}?replay=all`), 4_000)
  const reports = (async () => {
    for (let first = 1; first <= 4_000; first += 100) {
      tell(session, 100, first)
      await delay(5)
    }
  })()

  const read: TelemetryEnvelope[] = []
  while (read.length < 4_000) {
    const id = read.at(-1)?.seq
    const headers: Record<string, string> = id === undefined ? {} : { 'last-event-id': String(id) }
    const address = id === undefined ? `${path}?replay=all` : path
    read.push(...(await take(await framesOf(owner, address, headers), Math.min(450, 4_000 - read.length))))
  }

  await reports
  const numbers = Array.from({ length: 4_000 }, (_, index) => index + 1)
  assert.deepEqual(
    read.map(({ seq }) => seq),
    numbers,
  )
  assert.deepEqual(await all, read)
})

test('stored events are paged, filtered and ordered, also when the session has ended', async () => {
  const owner = await server.project()
  const session = await observed(owner)
  tell(session, 1)
  await untilStored(session, 1) // The server reads by now, so that it has the others when the agent ends.
  tell(session, 24, 2)
  agentOf(session).telemetry.append({ ...consoleEvent('error'), type: 'console_error' })
  agentOf(session).telemetry.append({ ...consoleEvent('idle'), type: 'network_idle', category: 'network' })
  assert.equal((await owner.call('DELETE', `/browsers/${session.session_id}`)).status, 204)

  const first = await list(owner, session, 'since=1h')
  assert.deepEqual(
    [first.body.length, first.headers.get('x-has-more'), first.headers.get('x-limit')],
    [20, 'true', '20'],
  )
  const offset = first.headers.get('x-next-offset')
  const second = await list(owner, session, `since=1h&offset=${offset}`)
  assert.deepEqual(textsOf([...first.body, ...second.body]).slice(18), [
    '19',
    '20',
    '21',
    '22',
    '23',
    '24',
    '25',
    'error',
    'idle',
  ])
  assert.deepEqual([second.headers.get('x-has-more'), second.headers.get('x-next-offset')], ['false', '0'])

  const newest = await list(owner, session, 'order=desc&limit=2')
  assert.deepEqual(textsOf(newest.body), ['idle', 'error'])
  const older = await list(owner, session, `order=desc&limit=2&offset=${newest.headers.get('x-next-offset')}`)
  assert.deepEqual(textsOf(older.body), ['25', '24'])

  for (const [query, expected] of [
    ['category=network', ['idle']],
    ['type=console_error&type=network_idle', ['error', 'idle']],
    ['category=network,page&type=console_error', []],
    [`until=${server.clock.now().toISOString()}`, []],
    ['category=console&type=console_error', ['error']],
  ] as const) {
    assert.deepEqual(textsOf((await list(owner, session, query)).body), expected, query)
  }
  server.clock.advance(10 * 60)
  assert.deepEqual((await list(owner, session, '')).body, [], 'by default the last five minutes')
  assert.equal((await list(owner, session, 'since=11m&limit=100')).body.length, 27)
})

test('an invalid query is a 400 that names the field', async () => {
  const owner = await server.project()
  const session = await observed(owner)

  const stream = await owner.call<Failure>('GET', `/browsers/${session.session_id}/telemetry/stream?type=nothing`)
  assert.deepEqual([stream.status, stream.body.message.split(':')[0]], [400, 'type.0'])
  for (const [query, field] of [
    ['since=yesterday', 'since'],
    ['until=5x', 'until'],
    ['order=desc&since=5m', 'since'],
    ['order=down', 'order'],
    ['limit=0', 'limit'],
    ['offset=-1', 'offset'],
    ['category=all', 'category.0'],
    ['type=console_log,nothing', 'type.1'],
  ] as const) {
    const { status, body } = await owner.call<Failure>(
      'GET',
      `/browsers/${session.session_id}/telemetry/events?${query}`,
    )
    assert.deepEqual([status, body.message.split(':')[0]], [400, field], query)
  }
})

test('another project finds neither stream nor events', async () => {
  const session = await observed(await server.project())
  const stranger = await server.project()

  for (const path of ['telemetry/stream', 'telemetry/events']) {
    const { status, body } = await stranger.call<Failure>('GET', `/browsers/${session.session_id}/${path}`)
    assert.deepEqual([status, body.code], [404, 'session_not_found'], path)
  }
  const token = session.cdp_ws_url.split('?')[1]
  const other = await stranger.session()
  assert.equal((await fetch(`${server.url}/s/${other.session_id}/telemetry/stream?${token}`)).status, 401)
})

test('events that could not be stored are kept, in order and without duplicates, for the database and the next server', async () => {
  const owner = await server.project()
  const session = await observed(owner)
  tell(session, 10)
  await untilStored(session, 10)
  await sql`alter table telemetry_events rename to telemetry_events_away`.execute(server.database)

  try {
    tell(session, 6_000, 11)
    await server.crash()
    await server.start()
    await delay(200)
  } finally {
    await sql`alter table telemetry_events_away rename to telemetry_events`.execute(server.database)
  }
  tell(session, 10, 6_011)

  await untilStored(session, 6_020)
  const all = await take(await framesOf(owner, `/browsers/${session.session_id}/telemetry/stream?replay=all`), 6_020)
  assert.deepEqual(
    textsOf(all),
    Array.from({ length: 6_020 }, (_, index) => String(index + 1)),
  )
})

test('several batches share an acknowledgement, and the last one is acknowledged', async () => {
  const owner = await server.project()
  const session = await observed(owner)
  const { telemetry } = agentOf(session)
  const acknowledged: number[] = []
  const acknowledge = telemetry.acknowledge.bind(telemetry)
  telemetry.acknowledge = (sequence) => {
    acknowledged.push(sequence)
    acknowledge(sequence)
  }

  const batches = 8
  for (let batch = 1; batch <= batches; batch++) {
    tell(session, 1, batch)
    await untilStored(session, batch)
  }
  for (let tries = 0; acknowledged.at(-1) !== batches && tries < 400; tries++) await delay(25)

  assert.equal(acknowledged.at(-1), batches)
  assert.ok(acknowledged.length <= batches / 2, String(acknowledged))
})

test('lost events are reported as one event with the number of the last of them', async () => {
  const owner = await server.project()
  const session = await observed(owner)
  const { telemetry } = agentOf(session)
  telemetry.append(consoleEvent('before'))
  for (let count = 0; count < 3; count++) telemetry.skip()
  telemetry.append(consoleEvent('after'))
  await untilStored(session, 3)

  const events = await take(await framesOf(owner, `/browsers/${session.session_id}/telemetry/stream?replay=all`), 3)

  assert.deepEqual(
    events.map(({ seq, event }) => [seq, event.type, event.data?.count]),
    [
      [1, 'console_log', undefined],
      [4, 'monitor_events_lost', 3],
      [5, 'console_log', undefined],
    ],
  )
})

test('the stream of a session without telemetry is silent, and ends with the session', async () => {
  const owner = await server.project()
  const session = await owner.session()
  const frames = take(await framesOf(owner, `/browsers/${session.session_id}/telemetry/stream`), 2)
  await owner.call('PATCH', `/browsers/${session.session_id}`, { telemetry: everything })
  tell(session, 1)
  await untilStored(session, 1)

  await owner.call('DELETE', `/browsers/${session.session_id}`)

  assert.deepEqual(textsOf(await frames), ['1'])
})

test('days are removed when their retention is over', async () => {
  const owner = await server.project()
  const session = await observed(owner)
  tell(session, 1)
  await untilStored(session, 1)
  const days = async () => {
    const { rows } = await sql`select from pg_inherits where inhparent = 'telemetry_events'::regclass`.execute(
      server.database,
    )
    return rows.length
  }
  await server.services.telemetry.rotate()
  const before = await days()

  server.clock.advance(32 * 86_400)
  await server.services.telemetry.rotate()

  assert.equal(before >= 3, true)
  assert.deepEqual((await list(owner, session, 'since=1000h')).body, [])
  tell(session, 1, 2)
  await untilStored(session, 1)
})

test('20 sessions send 5,000 events per second, and every event is stored', { timeout: 120_000 }, async () => {
  const owner = await server.project()
  const sessions = await Promise.all(Array.from({ length: 20 }, () => observed(owner)))
  const events = 500
  const begin = performance.now()
  const text = 'x'.repeat(300)

  for (let round = 0; round < events / 50; round++) {
    for (const session of sessions) {
      for (let index = 0; index < 50; index++) agentOf(session).telemetry.append(consoleEvent(text))
    }
    await delay(Math.max(0, begin + (round + 1) * 200 - performance.now()))
  }

  for (const session of sessions) await untilStored(session, events)
  const seconds = (performance.now() - begin) / 1_000
  // Many times the normal duration, because the machine may be busy with other tests.
  assert.ok(seconds < 30, `${seconds} s`)
})
