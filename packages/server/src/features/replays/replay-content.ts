import { Readable } from 'node:stream'
import { BerthError } from '@berth/contract/errors.ts'
import type { BinaryResponse } from '@berth/runtime/http/mount.ts'
import { parse as parseRange } from 'range-parser'
import type { ByteRange } from './replay-file.ts'
import type { OpenReplay } from './replay-service.ts'

interface RangeHeaders {
  readonly range?: string | undefined
  readonly 'if-range'?: string | string[] | undefined
}

/** A recording, or the part of it that the headers ask for (RFC 9110, §14). It never changes once it can be read. */
export function replayContent({ id, file, read }: OpenReplay, headers: RangeHeaders): BinaryResponse {
  const { sizeBytes } = file
  const etag = `"${id}"`
  const range = rangeOf(headers, sizeBytes, etag)
  const { start, end } = range ?? { start: 0, end: sizeBytes - 1 }
  return {
    content: Readable.from(read({ start, end }), { objectMode: false }),
    sizeBytes: end - start + 1,
    ...(range && { status: 206 }),
    headers: {
      etag,
      'accept-ranges': 'bytes',
      'cache-control': 'private',
      ...(range && { 'content-range': `bytes ${start}-${end}/${sizeBytes}` }),
    },
  }
}

/** Nothing where the whole file is the answer: without a range, with one of another kind, or with several. */
function rangeOf(headers: RangeHeaders, sizeBytes: number, etag: string): ByteRange | undefined {
  const { range, 'if-range': condition } = headers
  if (range === undefined || (condition !== undefined && condition !== etag)) return undefined
  const { type, code, ranges } = parseRange(sizeBytes, range)
  if (type !== 'bytes' || (code & malformed) !== 0) return undefined
  if (ranges.length === 0) throw new BerthError('range_not_satisfiable', { sizeBytes })
  return ranges.length === 1 ? ranges[0] : undefined
}

/** Bit of the parser's code. */
const malformed = 1
