import { Readable } from 'node:stream'
import { BerthError } from '@berth/contract/errors.ts'
import type { BinaryResponse } from '@berth/runtime/http/mount.ts'
import { parse as parseRange } from 'range-parser'
import type { ByteRange } from './sealed-parts.ts'

/** Content that never changes and can be read from any position. */
export interface RangedContent {
  /** Identifies the content uniquely. */
  readonly id: string
  readonly sizeBytes: number
  readonly read: (range: ByteRange) => AsyncIterable<Buffer>
}

interface RangeHeaders {
  readonly range?: string | undefined
  readonly 'if-range'?: string | string[] | undefined
}

/** The response with the content, or with the range that the headers request (RFC 9110, section 14). */
export function rangeResponse({ id, sizeBytes, read }: RangedContent, headers: RangeHeaders): BinaryResponse {
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

/** Undefined when the response is the whole content: without a range, with an unknown unit, or with several ranges. */
function rangeOf(headers: RangeHeaders, sizeBytes: number, etag: string): ByteRange | undefined {
  const { range, 'if-range': condition } = headers
  if (range === undefined || (condition !== undefined && condition !== etag)) return undefined
  const { type, code, ranges } = parseRange(sizeBytes, range)
  if (type !== 'bytes' || (code & malformed) !== 0) return undefined
  if (ranges.length === 0) throw new BerthError('range_not_satisfiable', { sizeBytes })
  return ranges.length === 1 ? ranges[0] : undefined
}

/** The parser's result for a malformed header. */
const malformed = 1
