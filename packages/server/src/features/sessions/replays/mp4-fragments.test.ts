import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeRecording, probe } from '../../../testing/recording.ts'
import { divideRecording, type Fragment, MalformedRecording } from './mp4-fragments.ts'
import { ReplayFile } from './replay-file.ts'

const recording = makeRecording(7)

async function* inChunks(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const divide = (bytes: Buffer, chunkSize = 1_000): Promise<Fragment[]> =>
  Array.fromAsync(divideRecording(inChunks(bytes, chunkSize)))

/** The file that a caller would download. */
async function fileOf([head, ...fragments]: readonly Fragment[]): Promise<Buffer> {
  const parts = fragments.map(({ bytes, durationMilliseconds }, number) => ({
    replay_id: '' as never,
    number,
    blob: '',
    size_bytes: bytes.length,
    duration_ms: durationMilliseconds,
  }))
  const file = new ReplayFile(head?.bytes ?? Buffer.alloc(0), parts)
  const read = file.read(
    { start: 0, end: file.sizeBytes - 1 },
    async ({ number }) => fragments[number]?.bytes as Buffer,
  )
  return Buffer.concat(await Array.fromAsync(read))
}

for (const size of [1, 7, 4_096, recording.length]) {
  test(`a recording that arrives in pieces of ${size} bytes is split into the same fragments`, async () => {
    const fragments = await divide(recording, size)

    assert.deepEqual(
      fragments.map(({ durationMilliseconds }) => durationMilliseconds),
      [0, 2_000, 2_000, 2_000, 1_000],
    )
    assert.deepEqual(probe(await fileOf(fragments)), { seconds: 7, frames: 70 })
  })
}

test('a recording that is cut off anywhere is a complete file of the fragments before', async () => {
  const whole = await divide(recording)
  const ends = whole.map((_fragment, index) =>
    whole.slice(0, index + 1).reduce((sum, { bytes }) => sum + bytes.length, 0),
  )

  for (const [index, end] of ends.entries()) {
    for (const cut of [end - 1, end, end + 9]) {
      const fragments = await divide(recording.subarray(0, cut))
      assert.deepEqual(fragments, whole.slice(0, cut < end ? index : index + 1), `${cut} bytes`)
    }
  }
  const { seconds, frames } = probe(await fileOf(await divide(recording.subarray(0, (ends[2] ?? 0) + 9))))
  assert.deepEqual([seconds, frames], [4, 40])
})

const head = recording.subarray(0, recording.indexOf('moof') - 4)
const box = (size: number, type: string, content = Buffer.alloc(0)) => {
  const start = Buffer.alloc(8)
  start.writeUInt32BE(size)
  start.write(type, 4, 'latin1')
  return Buffer.concat([start, content])
}
const malformed: readonly (readonly [what: string, bytes: Buffer])[] = [
  ['a box without a size', box(0, 'ftyp')],
  ['a box that is smaller than its own head', box(7, 'ftyp')],
  ['a head that is too large', box(1_000_000, 'moov')],
  ['a fragment before the header', box(8, 'moof')],
  ['a fragment that is too large', Buffer.concat([head, box(0xff_ff_ff_ff, 'moof')])],
  ['a fragment without samples', Buffer.concat([head, box(8, 'moof')])],
  ['a fragment that claims more samples than it has', Buffer.concat([head, cutSamples()])],
  ['boxes without end', Buffer.concat([head, ...Array.from({ length: 100 }, () => box(8, 'free'))])],
]
for (const [what, bytes] of malformed) {
  test(`${what} is refused`, async () => {
    await assert.rejects(divide(bytes), MalformedRecording)
  })
}

/** The first fragment, with a sample table that claims more samples than it contains. */
function cutSamples(): Buffer {
  const fragment = Buffer.from(recording.subarray(head.length, recording.indexOf('mdat') - 4))
  const trun = fragment.indexOf('trun')
  fragment.writeUInt32BE(fragment.readUInt32BE(trun + 4) | 0x1_00, trun + 4)
  fragment.writeUInt32BE(0xff_ff_ff, trun + 8)
  return fragment
}
