import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { after, test } from 'node:test'
import { Berth } from './testing/berth.ts'
import { startPages } from './testing/pages.ts'
import { readVideo } from './testing/video.ts'

const pages = await startPages()
const berth = await Berth.start({ environment: { BERTH_EGRESS_ALLOW: pages.allowed } })
const client = await berth.client()
const { replays } = client.browsers
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})

const colours = "['red', 'lime', 'blue', 'yellow', 'white']"
pages.serve(
  '/colours',
  `<body><script>let n = 0; setInterval(() => { document.body.style.background = ${colours}[n++ % 5] }, 200)</script>`,
)
pages.serve('/still', '<body style="background: white">')

const download = async (session: string, replay: string) => {
  const response = await replays.download(replay, { id: session })
  return { status: response.status, bytes: new Uint8Array(await response.arrayBuffer()) }
}

test('a recording of an odd size is a video of the same time, and plays and seeks on its page', async () => {
  const viewport = { width: 641, height: 481 }
  const { session_id: id } = await client.browsers.create({ viewport, start_url: `${pages.url}/colours` })

  const replay = await replays.start(id, { framerate: 10 })
  const begin = performance.now()
  const early = await download(id, replay.replay_id)
  await delay(6_000)
  const [seconds] = [(performance.now() - begin) / 1000, await replays.stop(replay.replay_id, { id })]
  const { status, bytes } = await download(id, replay.replay_id)

  assert.deepEqual([early.status, early.bytes.length, status], [202, 0, 200])
  const video = await readVideo(bytes)
  console.log(video, seconds, bytes.length)
})
