import { type ByteRange, readRange } from '../../../blobs/sealed-parts.ts'
import { timescale } from './mp4-fragments.ts'
import type { ReplayPart } from './replay-store.ts'

/** The largest number of references in an index. */
const maxReferences = 65_535
/** The part begins with a key frame. */
const startsWithKeyFrame = 0x90_00_00_00

/**
 * The MP4 file that consists of the parts of a recording. An index between its header and its first part tells players
 * how long it is and where each moment is. Only the parts that overlap with a range are read.
 */
export class ReplayFile {
  readonly sizeBytes: number
  readonly #beginning: Buffer
  readonly #parts: readonly ReplayPart[]

  constructor(head: Buffer, parts: readonly ReplayPart[]) {
    this.#beginning = Buffer.concat([head, indexOf(parts)])
    this.#parts = parts
    this.sizeBytes = parts.reduce((sum, { size_bytes }) => sum + size_bytes, this.#beginning.length)
  }

  async *read({ start, end }: ByteRange, readPart: (part: ReplayPart) => Promise<Buffer>): AsyncGenerator<Buffer> {
    const { length } = this.#beginning
    if (start < length) yield this.#beginning.subarray(start, end + 1)
    if (end >= length)
      yield* readRange(this.#parts, { start: Math.max(0, start - length), end: end - length }, readPart)
  }
}

/** A segment index box (`sidx`) with one reference for each part. */
function indexOf(parts: readonly ReplayPart[]): Buffer {
  const referenced = parts.slice(0, maxReferences)
  const box = Buffer.alloc(32 + 12 * referenced.length)
  box.writeUInt32BE(box.length, 0)
  box.write('sidx', 4, 'latin1')
  box.writeUInt32BE(1, 12) // The track.
  box.writeUInt32BE(timescale, 16)
  box.writeUInt16BE(referenced.length, 30)
  referenced.forEach(({ size_bytes, duration_ms }, index) => {
    const at = 32 + 12 * index
    box.writeUInt32BE(size_bytes, at)
    box.writeUInt32BE(duration_ms, at + 4)
    box.writeUInt32BE(startsWithKeyFrame, at + 8)
  })
  return box
}
