import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { BrowserReplay } from '@berth/contract/replays/replay.ts'
import type { Blobs } from '../../../blobs/blobs.ts'
import { FolderBlobs } from '../../../blobs/folder-blobs.ts'
import type { FakeAgent } from '../../../testing/fakes/fake-agent.ts'
import { makeRecording, probe } from '../../../testing/recording.ts'
import { type TestProject, TestServer } from '../../../testing/server-test.ts'

const recording = makeRecording(7)
const retentionDays = 3
let failure: NodeJS.ErrnoException | undefined

const server = await TestServer.open({
  replays: { retentionDays, maxProjectBytes: 1_000_000 },
  openBlobs: async (folder) => failing(await FolderBlobs.open(folder)),
})
after(() => server.close())

/** Writes fail while `failure` is set. */
function failing(blobs: FolderBlobs): Blobs {
  return {
    write: async (name, content) => {
      if (failure) throw failure
      return blobs.write(name, content)
    },
    read: (name, range) => blobs.read(name, range),
    remove: (name) => blobs.remove(name),
    list: (filter) => blobs.list(filter),
    removeUnfinished: (before) => blobs.removeUnfinished(before),
  }
}

interface Recorded {
  readonly project: TestProject
  readonly id: string
  readonly agent: FakeAgent
  readonly start: (body?: object) => ReturnType<typeof begin>
  readonly list: () => Promise<readonly BrowserReplay[]>
  /** Ends the agent's response. */
  readonly over: () => void
}

const begin = (project: TestProject, id: string, body?: object) =>
  project.call<BrowserReplay & { code: string; message: string }>('POST', `/browsers/${id}/replays`, body)

interface Script {
  readonly content?: Buffer
  /** The number of bytes that are sent immediately. */
  readonly sent?: number
}

/** A headful session whose agent sends the start of the recording immediately, and the rest when it is stopped. */
async function recorded({ content = recording, sent = content.length }: Script = {}): Promise<Recorded> {
  const project = await server.project()
  const { session_id: id } = await project.session({})
  const agent = server.host.agentOf(id as never)
  const streams = new Map<string, PassThrough>()
  const end = (key: string) => {
    streams.get(key)?.end(content.subarray(sent))
    streams.delete(key)
  }
  agent.record = ({ id: key }) => {
    const stream = new PassThrough()
    stream.write(content.subarray(0, sent))
    streams.set(key, stream)
    return stream
  }
  agent.onEndRecording = end
  return {
    project,
    id,
    agent,
    start: (body) => begin(project, id, body),
    list: async () => (await project.call<BrowserReplay[]>('GET', `/browsers/${id}/replays`)).body,
    over: () => [...streams.keys()].forEach(end),
  }
}

const get = (project: TestProject, path: string, headers: Record<string, string> = {}) =>
  fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${project.key}`, ...headers } })

const pathOf = (session: string, { replay_id }: BrowserReplay) => `/browsers/${session}/replays/${replay_id}`
const bytesOf = async (response: Response) => Buffer.from(await response.arrayBuffer())

/** Waits until a recording ends by itself. */
async function ended(list: Recorded['list']): Promise<BrowserReplay> {
  for (;;) {
    const [replay] = await list()
    if (replay?.finished_at) return replay
    await delay(10)
  }
}

/** Waits until the start of the recording is stored. */
async function stored({ replay_id }: BrowserReplay): Promise<void> {
  const parts = server.database
    .selectFrom('replay_parts')
    .select('blob')
    .where('replay_id', '=', replay_id as never)
  while (!(await parts.executeTakeFirst())) await delay(10)
}

test('a recording is started, listed, stopped twice, and read in whole and in part, also after the session', async () => {
  const { project, id, start, list } = await recorded()

  const { status, body: replay } = await start({})
  const early = await get(project, pathOf(id, replay))
  server.clock.advance(7)
  const stops = [
    await project.call('POST', `${pathOf(id, replay)}/stop`),
    await project.call('POST', `${pathOf(id, replay)}/stop`),
  ]
  await project.call('DELETE', `/browsers/${id}`)

  assert.equal(status, 201)
  assert.deepEqual([replay.finished_at, replay.end_reason], [null, undefined])
  assert.deepEqual([early.status, (await bytesOf(early)).length, early.headers.get('retry-after')], [202, 0, '5'])
  assert.deepEqual(
    stops.map((stop) => stop.status),
    [200, 200],
  )
  const [finished] = await list()
  assert.ok(finished?.finished_at && finished.started_at && finished.expires_at)
  assert.equal(finished.end_reason, 'stopped')
  assert.equal(Date.parse(finished.finished_at) - Date.parse(finished.started_at), 7_000)
  assert.equal(Date.parse(finished.expires_at) - Date.parse(finished.finished_at), retentionDays * 86_400_000)
  const whole = await get(project, pathOf(id, replay))
  const bytes = await bytesOf(whole)
  assert.deepEqual(
    ['content-type', 'accept-ranges', 'content-length'].map((name) => whole.headers.get(name)),
    ['video/mp4', 'bytes', `${bytes.length}`],
  )
  assert.deepEqual(probe(bytes), { seconds: 7, frames: 70 })
  await requireRanges((headers) => get(project, pathOf(id, replay), headers), bytes, `"${replay.replay_id}"`)
})

/** Requests ranges that begin and end within, at and beyond the boundaries of parts. */
async function requireRanges(ask: (headers: Record<string, string>) => Promise<Response>, whole: Buffer, etag: string) {
  const size = whole.length
  const borders = [0, 1, size - 1]
  for (let at = whole.indexOf('moof'); at > 0; at = whole.indexOf('moof', at + 1)) borders.push(at - 5, at - 4)
  for (const from of borders) {
    for (const to of borders.filter((border) => border >= from)) {
      const response = await ask({ range: `bytes=${from}-${to}` })
      assert.deepEqual([response.status, response.headers.get('content-range')], [206, `bytes ${from}-${to}/${size}`])
      assert.ok((await bytesOf(response)).equals(whole.subarray(from, to + 1)), `${from}-${to}`)
    }
  }
  const answers: readonly (readonly [headers: Record<string, string>, status: number, bytes: number])[] = [
    [{ range: 'bytes=-5' }, 206, 5],
    [{ range: 'bytes=5-' }, 206, size - 5],
    [{ range: `bytes=0-${size * 2}` }, 206, size],
    [{ range: 'bytes=0-0,5-5' }, 200, size],
    [{ range: 'lines=0-5' }, 200, size],
    [{ range: 'nonsense' }, 200, size],
    [{ range: 'bytes=0-4', 'if-range': etag }, 206, 5],
    [{ range: 'bytes=0-4', 'if-range': '"another"' }, 200, size],
  ]
  for (const [headers, status, length] of answers) {
    const response = await ask(headers)
    assert.deepEqual([response.status, (await bytesOf(response)).length], [status, length], JSON.stringify(headers))
  }
  const beyond = await ask({ range: `bytes=${size}-` })
  assert.deepEqual([beyond.status, ((await beyond.json()) as { code: string }).code], [416, 'range_not_satisfiable'])
}

const refused: readonly (readonly [what: string, body: object, status: number, code: string, field: string])[] = [
  ['no frames', { framerate: 0 }, 400, 'invalid_input', 'framerate'],
  ['half a frame', { framerate: 0.5 }, 400, 'invalid_input', 'framerate'],
  ['more frames than there are', { framerate: 61 }, 400, 'invalid_input', 'framerate'],
  ['more frames than without a GPU', { framerate: 21 }, 400, 'field_not_supported', 'framerate'],
  ['no time', { max_duration_in_seconds: 0 }, 400, 'invalid_input', 'max_duration_in_seconds'],
  ['time as text', { max_duration_in_seconds: '5' }, 400, 'invalid_input', 'max_duration_in_seconds'],
  ['sound', { record_audio: true }, 400, 'invalid_input', 'record_audio'],
]
test('an invalid recording is rejected with the name of the field, and records nothing', async (context) => {
  const { start, list } = await recorded()
  for (const [what, body, status, code, field] of refused) {
    await context.test(what, async () => {
      const answer = await start(body)

      assert.deepEqual([answer.status, answer.body.code], [status, code])
      assert.ok(answer.body.message.startsWith(field), answer.body.message)
    })
  }
  assert.deepEqual(await list(), [])
})

test('an agent that cannot record, or sends invalid data, is an error and leaves no recording', async () => {
  for (const content of [Buffer.alloc(0), Buffer.from('<html>'.repeat(100)), recording.subarray(0, 30)]) {
    const { start, list, over } = await recorded({ content })
    const starting = start()
    const poll = setInterval(over, 10)
    const { status, body } = await starting
    clearInterval(poll)
    assert.deepEqual([status, body.code, await list()], [500, 'replay_start_failed', []])
  }
  const { agent, start, list } = await recorded()
  agent.record = () => {
    throw new Error('no recorder')
  }
  const { status, body } = await start()
  assert.deepEqual([status, body.code, await list()], [500, 'replay_start_failed', []])
})

const ends: readonly (readonly [reason: string, body: object, sent: number])[] = [
  ['recorder_failed', {}, recording.length],
  ['max_duration', { max_duration_in_seconds: 7 }, recording.length],
  ['recorder_failed', { max_duration_in_seconds: 20 }, recording.length - 500],
]
for (const [reason, body, sent] of ends) {
  test(`a recording of ${sent} bytes that ends by itself with ${JSON.stringify(body)} has the reason ${reason}`, async () => {
    const { project, id, start, list, over } = await recorded({ content: recording.subarray(0, sent) })
    await start(body)

    over()

    const replay = await ended(list)
    assert.equal(replay.end_reason, reason)
    assert.ok(probe(await bytesOf(await get(project, pathOf(id, replay)))).seconds >= 6)
  })
}

test('the data of an agent that disconnects is kept', async () => {
  const { project, id, agent, start, list } = await recorded({ sent: recording.length - 2_000 })
  await start()

  agent.kill()

  const replay = await ended(list)
  assert.ok(['recorder_failed', 'session_ended'].includes(String(replay.end_reason)))
  assert.ok(probe(await bytesOf(await get(project, pathOf(id, replay)))).seconds >= 4)
})

for (const [code, reason] of [
  ['ENOSPC', 'storage_full'],
  ['EDQUOT', 'storage_full'],
  ['EIO', 'storage_failed'],
] as const) {
  test(`a storage error ${code} ends the recording with the reason ${reason}, and it can be played`, async () => {
    const half = recording.length / 2
    const { project, id, agent, start, list } = await recorded()
    const stream = new PassThrough()
    agent.record = () => stream
    stream.write(recording.subarray(0, half))
    const { body: started } = await start()
    await stored(started)
    failure = Object.assign(new Error('no room'), { code })

    stream.end(recording.subarray(half))
    const replay = await ended(list)
    failure = undefined

    assert.equal(replay.end_reason, reason)
    assert.ok(probe(await bytesOf(await get(project, pathOf(id, replay)))).seconds >= 2)
  })
}

test('a session can have four running recordings', async () => {
  const { project, id, start, list } = await recorded()

  const answers = await Promise.all(Array.from({ length: 6 }, () => start()))

  const codes = answers.map(({ status, body }) => body.code ?? status)
  assert.deepEqual(codes.toSorted(), [201, 201, 201, 201, 'replay_limit_reached', 'replay_limit_reached'])
  const [first] = await list()
  await project.call('POST', `${pathOf(id, first as BrowserReplay)}/stop`)
  assert.equal((await start()).status, 201)
})

test('a viewport changes during a recording only with force, and then each recording continues as a new segment', async () => {
  const { project, id, agent, start, list } = await recorded()
  await start({ framerate: 7, max_duration_in_seconds: 20 })
  await start({ framerate: 9 })
  const asked: unknown[] = []
  const { record } = agent
  agent.record = (request) => {
    asked.push([request.framerate, request.max_seconds, agent.viewports.length])
    return record(request)
  }
  const resize = (viewport: object) => project.call<{ code: string }>('PATCH', `/browsers/${id}`, { viewport })

  const plain = await resize({ width: 500, height: 400 })
  const forced = await resize({ width: 500, height: 400, force: true })

  assert.deepEqual(
    [plain.status, plain.body.code, plain.headers.get('x-should-retry')],
    [409, 'viewport_in_use', 'false'],
  )
  assert.equal(forced.status, 200)
  assert.deepEqual(agent.viewports.length, 1)
  assert.deepEqual(asked.toSorted(), [
    [7, 13, 1],
    [9, undefined, 1],
  ])
  const reasons = (await list()).map(({ end_reason }) => end_reason)
  assert.deepEqual(reasons.toSorted(), ['viewport_changed', 'viewport_changed', undefined, undefined])
})

test('the page of a recording plays it only with its token', async () => {
  const { project, id, start } = await recorded()
  const { body: replay } = await start()
  const other = await recorded()
  const { body: foreign } = await other.start()
  const running = await fetch(replay.replay_view_url)
  await project.call('POST', `${pathOf(id, replay)}/stop`)

  const page = await fetch(replay.replay_view_url)

  const html = await page.text()
  assert.ok(!(await running.text()).includes('<video'))
  assert.match(
    String(page.headers.get('content-security-policy')),
    /^default-src 'none'; media-src 'self'; style-src 'sha256-/,
  )
  const [, source = ''] = /<video [^>]*src="([^"]+)"/.exec(html) ?? []
  const video = await fetch(new URL(source, replay.replay_view_url), { headers: { range: 'bytes=0-9' } })
  assert.deepEqual([video.status, (await bytesOf(video)).length], [206, 10])
  const token = new URL(foreign.replay_view_url).searchParams.get('jwt') ?? ''
  const session = await project.call('GET', `/browsers/${id}`)
  const sessionToken = new URL(session.body.cdp_ws_url).searchParams.get('jwt') ?? ''
  for (const wrong of ['', 'x', token, sessionToken]) {
    for (const path of ['view', 'video']) {
      const { status } = await fetch(`${server.url}/replays/${replay.replay_id}/${path}?jwt=${wrong}`)
      assert.equal(status, 401, `${path} with ${wrong}`)
    }
  }
})

test('a recording belongs to its session', async () => {
  const { project, start } = await recorded()
  const { body: replay } = await start()
  const { session_id: other } = await project.session({})

  for (const [method, path] of [
    ['GET', pathOf(other, replay)],
    ['POST', `${pathOf(other, replay)}/stop`],
  ] as const) {
    const { status, body } = await project.call<{ code: string }>(method, path)
    assert.deepEqual([status, body.code], [404, 'replay_not_found'])
  }
})

test('a recording of a killed server is completed by the next one, and removed when it expires', async () => {
  const { project, id, start, list, over } = await recorded({ sent: recording.length - 100 })
  const { body: replay } = await start()
  await stored(replay)
  await server.crash()
  await server.start()
  await server.services.replays.finishInterrupted()

  const [finished] = await list()
  assert.equal(finished?.end_reason, 'interrupted')
  assert.ok(probe(await bytesOf(await get(project, pathOf(id, replay)))).seconds >= 2)
  server.clock.advance((retentionDays + 1) * 86_400)
  await server.services.replays.expire()
  assert.deepEqual(await list(), [])
  const before = new Date('2100-01-01')
  const names = await Array.fromAsync(server.services.blobs.list({ prefix: 'replay-', before }))
  const used = names.length > 0 ? await server.services.replays.listUsedBlobs(names) : []
  assert.deepEqual(used.toSorted(), names.toSorted())
  over()
})
