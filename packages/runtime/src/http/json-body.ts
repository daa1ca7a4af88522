import { Readable } from 'node:stream'
import { BerthError } from '@berth/contract/errors.ts'
import type { FastifyInstance } from 'fastify'
import { parse } from 'secure-json-parse'
import { within } from '../async/deadline.ts'

const maxDepth = 100
const bodyDeadlineMilliseconds = 30_000

interface JsonBodyOptions {
  /** How long a body may take to arrive. */
  readonly deadlineMilliseconds?: number
}

/**
 * Reads JSON bodies strictly: UTF-8 only, no `__proto__`, at most 100 levels, no NUL character (PostgreSQL cannot
 * store it) and no unpaired surrogate. An empty body is an absent one, whatever its content type says.
 */
export function acceptJsonBodies(
  app: FastifyInstance,
  { deadlineMilliseconds = bodyDeadlineMilliseconds }: JsonBodyOptions = {},
): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(
    '*',
    async (
      request: {
        headers: Record<string, unknown>
        routeOptions: { bodyLimit?: number; config: { streamsBody?: boolean } }
      },
      payload: AsyncIterable<Buffer>,
    ) => {
      // Its handler reads it as it comes.
      if (request.routeOptions.config.streamsBody) return undefined
      const limitBytes = request.routeOptions.bodyLimit ?? app.initialConfig.bodyLimit ?? 1024 * 1024
      return readJsonBody(request.headers, payload, { limitBytes, deadlineMilliseconds })
    },
  )
}

interface JsonBodyLimits extends JsonBodyOptions {
  readonly limitBytes: number
  /** Members in which text may hold a NUL character, as in `Endpoint`. */
  readonly dataFields?: readonly string[] | undefined
}

/** The parsed body, or nothing where there is none. */
export async function readJsonBody(
  headers: Record<string, unknown>,
  payload: AsyncIterable<Buffer>,
  { limitBytes, deadlineMilliseconds = bodyDeadlineMilliseconds, dataFields }: JsonBodyLimits,
): Promise<unknown> {
  const contentType = mediaType(headers['content-type'])
  const bytes = await readWithin(deadlineMilliseconds, readAll(payload, limitBytes))
  if (bytes.length === 0) return undefined

  if (contentType !== 'application/json' && !contentType.endsWith('+json')) {
    throw new BerthError('unsupported_media_type', { reason: 'The body must be application/json.' })
  }
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') {
    throw new BerthError('unsupported_media_type', { reason: 'content-encoding: bodies must not be compressed.' })
  }
  return parseJson(bytes, dataFields)
}

function mediaType(header: unknown): string {
  return (
    String(header ?? '')
      .split(';', 1)[0]
      ?.trim()
      .toLowerCase() ?? ''
  )
}

/** Ends the waiting, not the reading: a stream that is destroyed takes the connection with it, and the answer. */
export function readWithin<Value>(milliseconds: number, reading: Promise<Value>): Promise<Value> {
  return within(milliseconds, reading, () => new BerthError('request_timeout'))
}

async function readAll(payload: AsyncIterable<Buffer>, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  // Whoever is refused is to hear of it: the connection must outlive the reading.
  const source = payload instanceof Readable ? payload.iterator({ destroyOnReturn: false }) : payload
  for await (const chunk of source) {
    length += chunk.length
    if (length > limitBytes) throw new BerthError('body_too_large', { limitBytes })
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, length)
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Parses one JSON text, or says what is wrong with it. */
export function parseJson(bytes: Uint8Array, dataFields: readonly string[] = []): unknown {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw new BerthError('bad_request', { reason: 'The body is not UTF-8.' })
  }
  let value: unknown
  try {
    value = parse(text, undefined, { protoAction: 'ignore', constructorAction: 'ignore' })
  } catch {
    throw new BerthError('bad_request', { reason: 'The body is not JSON.' })
  }
  checkValue(value, dataFields)
  return value
}

/** Walks without recursion: the nesting is the sender's. */
function checkValue(root: unknown, dataFields: readonly string[]): void {
  const open: { value: unknown; depth: number; isData: boolean }[] = [{ value: root, depth: 1, isData: false }]
  for (let next = open.pop(); next; next = open.pop()) {
    const { value, depth, isData } = next
    const check = isData ? checkWellFormed : checkText
    if (typeof value === 'string') check(value)
    if (typeof value !== 'object' || value === null) continue
    if (depth > maxDepth)
      throw new BerthError('bad_request', { reason: `The body is nested deeper than ${maxDepth} levels.` })
    for (const key of Object.keys(value)) {
      if (key === '__proto__')
        throw new BerthError('bad_request', { reason: 'The body must not hold a key __proto__.' })
      check(key)
      const member = (value as Record<string, unknown>)[key]
      open.push({ value: member, depth: depth + 1, isData: isData || (depth === 1 && dataFields.includes(key)) })
    }
  }
}

/** Refuses what cannot be stored or sent on as it is. */
export function checkText(text: string): void {
  if (text.includes('\0')) throw new BerthError('bad_request', { reason: 'Text must not hold a NUL character.' })
  checkWellFormed(text)
}

function checkWellFormed(text: string): void {
  if (!text.isWellFormed()) throw new BerthError('bad_request', { reason: 'Text must not hold an unpaired surrogate.' })
}
