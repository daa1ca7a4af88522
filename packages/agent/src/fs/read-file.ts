import type { BigIntStats } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { BerthError } from '@berth/contract/errors.ts'
import { errorBody } from '@berth/runtime/http/error-reply.ts'
// Express and Koa parse these headers with the same packages, which have no dependencies.
import fresh from 'fresh'
import { parse as parseRange } from 'range-parser'
import { Content } from '../operations/served-operation.ts'
import { openDiskFile } from './disk-file.ts'

const chunkBytes = 64 * 1024

/** A file, or the part of it that the headers ask for (RFC 9110 §13 and §14). */
export async function readDiskFile(path: string, headers: IncomingHttpHeaders, signal: AbortSignal): Promise<Content> {
  const handle = await openDiskFile({ field: 'path', path })
  closeWith(signal, handle)
  const stats = await handle.stat({ bigint: true })
  const size = Number(stats.size)
  const described = { ...validators(stats), 'accept-ranges': 'bytes' }
  if (isKnown(headers, described)) return new Content(Buffer.alloc(0), { status: 304, headers: described })

  const range = rangeOf(headers, size, described)
  if (range === 'unsatisfiable') return beyondTheEnd(size)
  const { start, end } = range ?? { start: 0, end: size - 1 }
  return new Content(bytesOf(handle, start, end), {
    ...(range && { status: 206 }),
    headers: {
      ...described,
      'content-length': end - start + 1,
      ...(range && { 'content-range': `bytes ${start}-${end}/${size}` }),
    },
  })
}

/** Ignores the caller's Cache-Control: a condition that it sends is intended. */
function isKnown(headers: IncomingHttpHeaders, described: Validators): boolean {
  const { 'if-none-match': noneMatch, 'if-modified-since': modifiedSince } = headers
  return fresh({ 'if-none-match': noneMatch, 'if-modified-since': modifiedSince }, { ...described })
}

/** The signal aborts at the end of every response, also of one that nobody reads. */
function closeWith(signal: AbortSignal, handle: FileHandle): void {
  const close = () => void handle.close().catch(() => {})
  if (signal.aborted) close()
  else signal.addEventListener('abort', close, { once: true })
}

interface Validators {
  readonly etag: string
  readonly 'last-modified': string
}

function validators({ ino, size, mtimeNs, mtime }: BigIntStats): Validators {
  const etag = `"${[ino, size, mtimeNs].map((part) => part.toString(36)).join('-')}"`
  return { etag, 'last-modified': mtime.toUTCString() }
}

interface ByteRange {
  readonly start: number
  readonly end: number
}

/** Undefined if the response is the whole file: without a range, with another kind of range, or with several. */
function rangeOf(
  headers: IncomingHttpHeaders,
  size: number,
  { etag, 'last-modified': lastModified }: Validators,
): ByteRange | 'unsatisfiable' | undefined {
  const { range } = headers
  const condition = headers['if-range']
  if (range === undefined || (condition !== undefined && condition !== etag && condition !== lastModified)) {
    return undefined
  }
  const { type, code, ranges } = parseRange(size, range)
  if (type !== 'bytes' || (code & malformed) !== 0) return undefined
  if (ranges.length === 0) return 'unsatisfiable'
  return ranges.length === 1 ? ranges[0] : undefined
}

/** The parser's result for a malformed header. */
const malformed = 1

function beyondTheEnd(size: number): Content {
  const body = errorBody(new BerthError('range_not_satisfiable', { sizeBytes: size }))
  return new Content(Buffer.from(JSON.stringify(body)), {
    status: 416,
    headers: { 'content-type': 'application/json; charset=utf-8', 'content-range': `bytes */${size}` },
  })
}

async function* bytesOf(handle: FileHandle, start: number, end: number): AsyncGenerator<Uint8Array> {
  let position = start
  while (position <= end) {
    const length = Math.min(chunkBytes, end - position + 1)
    const { bytesRead, buffer } = await handle.read({ buffer: Buffer.allocUnsafeSlow(length), position })
    // The length was already sent, so only a broken response shows that it was too long.
    if (bytesRead === 0) throw new Error('the file has become shorter')
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}
