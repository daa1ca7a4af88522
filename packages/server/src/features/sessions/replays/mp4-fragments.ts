/** A part of a recording that can be played alone: it begins with a key frame. */
export interface Fragment {
  readonly bytes: Buffer
  readonly durationMilliseconds: number
}

/** The recorder counts time in milliseconds. */
export const timescale = 1000

/** A fragment has two seconds, which the recorder limits to 1 MiB on average. Data from a machine is untrusted. */
const maxFragmentBytes = 8 * 1024 ** 2
const maxHeadBytes = 64 * 1024
const boxHeadBytes = 8

/** The data from the machine is not a valid recording. */
export class MalformedRecording extends Error {}

/**
 * Splits fragmented MP4 (ISO/IEC 14496-12) into its header and its fragments. The header is yielded first. An
 * incomplete fragment at the end is dropped: the rest is a complete file, however the recording ended.
 */
export async function* divideRecording(stream: AsyncIterable<Buffer>): AsyncGenerator<Fragment> {
  let isInHead = true
  let collected: Buffer[] = []
  let durationMilliseconds = 0
  for await (const box of boxesOf(stream)) {
    const type = typeOf(box)
    // The recorder writes this index of the whole file last. Its offsets do not match this file.
    if (type === 'mfra') continue
    if (isInHead && type === 'moof') throw new MalformedRecording('a fragment before the header')
    collected.push(box)
    if (type === 'moof') durationMilliseconds += durationOf(box)
    if (type !== (isInHead ? 'moov' : 'mdat')) {
      if (collected.length > 8) throw new MalformedRecording('too many boxes in one fragment')
      continue
    }
    yield { bytes: Buffer.concat(collected), durationMilliseconds }
    isInHead = false
    collected = []
    durationMilliseconds = 0
  }

  async function* boxesOf(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let pending: Buffer[] = []
    let length = 0
    let wanted = boxHeadBytes
    for await (const chunk of source) {
      pending.push(chunk)
      length += chunk.length
      while (length >= wanted) {
        const bytes = Buffer.concat(pending)
        const size = bytes.readUInt32BE(0)
        if (size < boxHeadBytes || size > (isInHead ? maxHeadBytes : maxFragmentBytes)) {
          throw new MalformedRecording(`a box of ${size} bytes`)
        }
        pending = [bytes]
        wanted = size
        if (length < size) break
        yield bytes.subarray(0, size)
        pending = [bytes.subarray(size)]
        length -= size
        wanted = boxHeadBytes
      }
    }
  }
}

function typeOf(box: Buffer): string {
  return box.toString('latin1', 4, boxHeadBytes)
}

/** The sum of the durations of its samples. There is only one track. */
function durationOf(moof: Buffer): number {
  try {
    const traf = childOf(moof, 'traf')
    const defaultDuration = defaultDurationOf(childOf(traf, 'tfhd'))
    const trun = childOf(traf, 'trun')
    const flags = trun.readUInt32BE(8) & 0xff_ff_ff
    const count = trun.readUInt32BE(12)
    if ((flags & 0x1_00) === 0) return count * defaultDuration
    const first = 16 + (flags & 0x1 ? 4 : 0) + (flags & 0x4 ? 4 : 0)
    const sampleBytes = 4 * [0x1_00, 0x2_00, 0x4_00, 0x8_00].filter((flag) => flags & flag).length
    let sum = 0
    for (let sample = 0; sample < count; sample++) sum += trun.readUInt32BE(first + sample * sampleBytes)
    return sum
  } catch (cause) {
    throw new MalformedRecording('a fragment without its duration', { cause })
  }
}

function defaultDurationOf(tfhd: Buffer): number {
  const flags = tfhd.readUInt32BE(8) & 0xff_ff_ff
  if ((flags & 0x8) === 0) return 0
  return tfhd.readUInt32BE(16 + (flags & 0x1 ? 8 : 0) + (flags & 0x2 ? 4 : 0))
}

function childOf(box: Buffer, type: string): Buffer {
  for (let at = boxHeadBytes; at < box.length; ) {
    const size = box.readUInt32BE(at)
    if (size < boxHeadBytes) break
    const child = box.subarray(at, at + size)
    if (typeOf(child) === type) return child
    at += size
  }
  throw new Error(`there is no ${type}`)
}
