import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type Kernel from '@onkernel/sdk'
import { chromium } from 'playwright-core'
import { deepOnly } from './fault/testing/deep.ts'
import { Berth } from './testing/berth.ts'
import { startBareChromium } from './testing/browsers/bare-chromium.ts'
import { startPages } from './testing/pages.ts'
import { agentProcess, browserProcess, listProcesses } from './testing/processes.ts'
import { readVideo, type Video } from './testing/video.ts'
import { within } from './testing/within.ts'

const pages = await startPages()
const dataFolder = await mkdtemp(join(tmpdir(), 'berth-replays-'))
const start = () => Berth.start({ dataFolder, environment: { BERTH_EGRESS_ALLOW: pages.allowed } })
let berth = await start()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
  await rm(dataFolder, { recursive: true, force: true })
})

const colours = "['red', 'lime', 'blue', 'yellow', 'white']"
pages.serve(
  '/colours',
  `<body><script>let n = 0; setInterval(() => { document.body.style.background = ${colours}[n++ % 5] }, 200)</script>`,
)
pages.serve('/still', '<body style="background: white">')
const pale = [221, 238, 255] as const
pages.serve('/pale', `<body style="background: rgb(${pale})">`)

/** Including fields that the official client does not have yet. */
type Replay = Kernel.Browsers.ReplayListResponse[number] & { readonly end_reason?: string }

async function listed(session: string, replay: string): Promise<Replay | undefined> {
  const list: readonly Replay[] = await (await berth.client()).browsers.replays.list(session)
  return list.find(({ replay_id }) => replay_id === replay)
}

/** Waits until a recording has ended by itself. */
async function ended(session: string, replay: string): Promise<string> {
  for (;;) {
    const { finished_at, end_reason = '' } = (await listed(session, replay)) ?? {}
    if (finished_at) return end_reason
    await delay(100)
  }
}

async function download(session: string, replay: string, headers: Record<string, string> = {}) {
  const client = await berth.client()
  const response = await client.browsers.replays.download(replay, { id: session }, { headers })
  return { status: response.status, headers: response.headers, bytes: new Uint8Array(await response.arrayBuffer()) }
}

const videoOf = async (session: string, replay: string) => readVideo((await download(session, replay)).bytes)

/** How much a busy host may delay the encoder's last frame of a short recording. */
const busySeconds = 0.5

/** Times around the responses to a start and a stop. A busy host may delay both. */
interface Marks {
  readonly startAsked: number
  readonly startAnswered: number
  readonly stopAsked: number
  readonly stopAnswered: number
}

/**
 * A recording begins while its start request is answered, and ends while its stop request is. For a minute, 2 % is more
 * than a second.
 */
function assertMatchesClock(replay: Replay | undefined, video: Video, marks: Marks): void {
  const { startAsked, startAnswered, stopAsked, stopAnswered } = marks
  const [started, finished] = [Date.parse(String(replay?.started_at)), Date.parse(String(replay?.finished_at))]
  assert.ok(startAsked <= started && started <= startAnswered, `started at ${started}: ${JSON.stringify(marks)}`)
  assert.ok(stopAsked <= finished && finished <= stopAnswered, `finished at ${finished}: ${JSON.stringify(marks)}`)
  const [least, most] = [(stopAsked - startAnswered) / 1000, (stopAnswered - startAsked) / 1000]
  const { seconds, longestFrameSeconds: frame } = video
  const slack = frame + (least < 30 ? busySeconds : 0)
  const isRight = seconds >= least * 0.98 - slack && seconds <= most * 1.02 + slack
  assert.ok(isRight, `${seconds} s of ${least} to ${most} s, with frames of up to ${frame} s`)
}

const lengthOf = ({ started_at, finished_at }: Replay) =>
  (Date.parse(String(finished_at)) - Date.parse(String(started_at))) / 1000

/** The encoder of the newest recording of the session. */
async function encoderOf(session: string): Promise<number> {
  const [agent, processes] = [await agentProcess(session), await listProcesses()]
  const encoders = processes.filter(({ parent, command }) => parent === agent && command.startsWith('ffmpeg'))
  return Math.max(...encoders.map(({ pid }) => pid))
}

test('recordings of an odd size have the right length, play and seek on their page, and end when requested', async () => {
  const client = await berth.client()
  const { replays } = client.browsers
  const viewport = { width: 641, height: 481 }
  const { session_id: id } = await client.browsers.create({ viewport, start_url: `${pages.url}/colours` })
  const short = await replays.start(id, { framerate: 5, max_duration_in_seconds: 4 })
  const startAsked = Date.now()
  const replay = await replays.start(id, { framerate: 10 })
  const startAnswered = Date.now()
  const early = await download(id, replay.replay_id)
  const resized = await client.browsers.update(id, { viewport: { width: 700, height: 500 } }).catch((error) => error)
  await delay(6_000)

  const stopAsked = Date.now()
  await replays.stop(replay.replay_id, { id })
  const stopAnswered = Date.now()
  await replays.stop(replay.replay_id, { id })

  assert.deepEqual([early.status, early.bytes.length], [202, 0])
  assert.ok(Number(early.headers.get('retry-after')) > 0)
  assert.deepEqual([resized.status, resized.error?.code], [409, 'viewport_in_use'])
  const video = await videoOf(id, replay.replay_id)
  assert.deepEqual([video.codec, video.pixelFormat, video.width, video.height], ['h264', 'yuv420p', 642, 482])
  assertMatchesClock(await listed(id, replay.replay_id), video, { startAsked, startAnswered, stopAsked, stopAnswered })
  assert.ok(video.differentFrames >= 5, `${video.differentFrames} frames`)
  assert.equal(await ended(id, short.replay_id), 'max_duration')
  const shortVideo = await videoOf(id, short.replay_id)
  assert.ok(Math.abs(shortVideo.seconds - 4) < 0.5, `${shortVideo.seconds} s`)

  const range = await download(id, short.replay_id, { range: 'bytes=0-1023' })
  assert.deepEqual([range.status, range.bytes.length], [206, 1024])
  await using bare = await startBareChromium()
  await playAndSeek(bare.cdpUrl, String(replay.replay_view_url), video.seconds)
  await client.browsers.deleteByID(id)
})

/** Runs in the page of a recording. */
const playback = `(async () => {
  const video = document.querySelector('video')
  const happens = (event) => new Promise((resolve) => video.addEventListener(event, resolve, { once: true }))
  if (video.readyState === 0) await happens('loadedmetadata')
  const sought = happens('seeked')
  video.currentTime = 4.5
  await sought
  const { currentTime, duration } = video
  video.muted = true
  const over = happens('ended')
  await video.play()
  await over
  return { currentTime, duration, end: video.currentTime }
})()`

async function playAndSeek(cdpUrl: string, url: string, seconds: number): Promise<void> {
  const browser = await chromium.connectOverCDP(cdpUrl)
  const page = await browser.newPage()
  const faults: string[] = []
  page.on('console', (message) => faults.push(message.text()))
  await page.goto(url)

  const seen = (await page.evaluate(playback)) as { currentTime: number; duration: number; end: number }

  assert.deepEqual(faults, [])
  assert.equal(seen.currentTime, 4.5)
  assert.ok(Math.abs(seen.duration - seconds) < 0.3, `${seen.duration} s`)
  assert.ok(Math.abs(seen.end - seconds) < 0.3, `${seen.end} s`)
  await browser.close()
}

/** Runs in the page of a recording: the colour of a pixel near its end. */
const lastColour = `(async () => {
  const video = document.querySelector('video')
  const happens = (event) => new Promise((resolve) => video.addEventListener(event, resolve, { once: true }))
  if (video.readyState === 0) await happens('loadedmetadata')
  const sought = happens('seeked')
  video.currentTime = video.duration - 0.2
  await sought
  const canvas = Object.assign(document.createElement('canvas'), { width: video.videoWidth, height: video.videoHeight })
  const context = canvas.getContext('2d')
  context.drawImage(video, 0, 0)
  return [...context.getImageData(canvas.width / 2, canvas.height / 2, 1, 1).data].slice(0, 3)
})()`

async function playedColour(url: string): Promise<readonly number[]> {
  await using bare = await startBareChromium()
  const browser = await chromium.connectOverCDP(bare.cdpUrl)
  const page = await browser.newPage()
  await page.goto(url)
  const colour = (await page.evaluate(lastColour)) as number[]
  await browser.close()
  return colour
}

test('a recording plays after a forced resize, the kill of its encoder, a crash of Chromium and the end of its session', async () => {
  const client = await berth.client()
  const { replays } = client.browsers
  const viewport = { width: 1023, height: 768 }
  const { session_id: id } = await client.browsers.create({ viewport, start_url: `${pages.url}/colours` })
  const first = await replays.start(id)
  await delay(3_000)

  await client.browsers.update(id, { viewport: { width: 390, height: 845, force: true } })
  const second = (await replays.list(id)).at(-1)
  assert.ok(second && second.replay_id !== first.replay_id)
  await delay(3_500)
  process.kill(await encoderOf(id), 'SIGKILL')
  assert.equal(await within(60_000, ended(id, second.replay_id)), 'recorder_failed')
  const third = await replays.start(id)
  await delay(2_000)
  process.kill(await browserProcess(id), 'SIGKILL')
  await delay(3_000)
  await client.browsers.deleteByID(id)

  assert.equal((await listed(id, first.replay_id))?.end_reason, 'viewport_changed')
  const [one, two, three] = [
    await videoOf(id, first.replay_id),
    await videoOf(id, second.replay_id),
    await videoOf(id, third.replay_id),
  ]
  assert.deepEqual([one.width, one.height], [1024, 768])
  assert.deepEqual([two.width, two.height], [390, 846])
  assert.ok(two.seconds >= 1.5, `the fragment that was written is lost, and no other: ${two.seconds} s`)
  const last = (await listed(id, third.replay_id)) as Replay
  assert.equal(last.end_reason, 'session_ended')
  assert.ok(Math.abs(three.seconds - lengthOf(last)) < 0.5, `${three.seconds} s of ${lengthOf(last)} s`)
})

test('a recording plays after berth was killed, and the session can be recorded again', deepOnly, async () => {
  const client = await berth.client()
  const { session_id: id } = await client.browsers.create({
    viewport: { width: 800, height: 600 },
    start_url: `${pages.url}/still`,
    timeout_seconds: 300,
  })
  const replay = await client.browsers.replays.start(id)
  await delay(5_500)

  await berth.signal('SIGKILL')
  berth = await start()

  assert.equal((await listed(id, replay.replay_id))?.end_reason, 'interrupted')
  const video = await videoOf(id, replay.replay_id)
  assert.ok(video.seconds >= 2, `${video.seconds} s`)
  assert.ok(video.brightness > 200)
  const next = await (await berth.client()).browsers.replays.start(id)
  await (await berth.client()).browsers.replays.stop(next.replay_id, { id })
  await videoOf(id, next.replay_id)
})

test('a headless session is recorded, and the recording follows the page in front', async () => {
  const client = await berth.client()
  const { session_id: id, cdp_ws_url } = await client.browsers.create({
    headless: true,
    viewport: { width: 641, height: 481 },
    start_url: `${pages.url}/colours`,
  })
  const short = await client.browsers.replays.start(id, { framerate: 5, max_duration_in_seconds: 3 })
  const startAsked = Date.now()
  const replay = await client.browsers.replays.start(id, { framerate: 10 })
  const startAnswered = Date.now()
  await delay(3_000)
  const cdp = await chromium.connectOverCDP(cdp_ws_url)
  const page = await cdp.contexts()[0]?.newPage()
  await page?.goto(`${pages.url}/pale`)
  await delay(3_000)

  const stopAsked = Date.now()
  await client.browsers.replays.stop(replay.replay_id, { id })
  const stopAnswered = Date.now()

  await cdp.close()
  const video = await videoOf(id, replay.replay_id)
  assert.deepEqual([video.width, video.height], [642, 482])
  assertMatchesClock(await listed(id, replay.replay_id), video, { startAsked, startAnswered, stopAsked, stopAnswered })
  assert.ok(video.differentFrames >= 8, `${video.differentFrames} frames`)
  assert.equal(await ended(id, short.replay_id), 'max_duration')
  const { seconds, longestFrameSeconds: frame } = await videoOf(id, short.replay_id)
  assert.ok(seconds >= 3 * 0.98 && seconds <= 3 * 1.02 + frame + busySeconds, `${seconds} s of 3 s`)
  const colour = await playedColour(String(replay.replay_view_url))
  assert.ok(
    pale.every((part, index) => Math.abs(part - (colour[index] ?? 0)) < 6),
    `${pale} plays as ${colour}`,
  )
  await client.browsers.deleteByID(id)
})

for (const headless of [false, true]) {
  const shape = headless ? 'headless' : 'headful'
  test(`a minute of a still page is recorded as a minute, ${shape}`, deepOnly, async () => {
    const client = await berth.client()
    const start_url = `${pages.url}/still`
    const { session_id: id } = await client.browsers.create({ headless, start_url, timeout_seconds: 300 })
    const startAsked = Date.now()
    const replay = await client.browsers.replays.start(id, { framerate: 20 })
    const startAnswered = Date.now()
    await delay(60_000)

    const stopAsked = Date.now()
    await client.browsers.replays.stop(replay.replay_id, { id })
    const stopAnswered = Date.now()

    const [video, record] = [await videoOf(id, replay.replay_id), await listed(id, replay.replay_id)]
    assertMatchesClock(record, video, { startAsked, startAnswered, stopAsked, stopAnswered })
    assert.ok(Math.abs(video.seconds / lengthOf(record as Replay) - 1) < 0.02, `${video.seconds} s`)
    await client.browsers.deleteByID(id)
  })
}

for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
  test(`a recording plays after ${signal} of berth and of the agent`, deepOnly, async () => {
    const client = await berth.client()
    const { session_id: id } = await client.browsers.create({ start_url: `${pages.url}/still`, timeout_seconds: 300 })
    const replay = await client.browsers.replays.start(id)
    await delay(8_000)
    await berth.signal(signal)
    berth = await start()
    const next = await (await berth.client()).browsers.replays.start(id)
    await delay(8_000)
    process.kill(await agentProcess(id), signal)

    await within(30_000, ended(id, next.replay_id))

    const lost = signal === 'SIGTERM' ? 2 : 5
    assert.ok((await videoOf(id, replay.replay_id)).seconds >= 8 - lost)
    assert.ok((await videoOf(id, next.replay_id)).seconds >= 4)
  })
}
