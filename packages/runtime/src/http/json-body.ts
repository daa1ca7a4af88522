import { Readable } from 'node:stream'
import { BerthError } from '@berth/contract/errors.ts'
import type { FastifyInstance } from 'fastify'
import { parse } from 'secure-json-parse'

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
}

/** The parsed body, or nothing where there is none. */
export async function readJsonBody(
  headers: Record<string, unknown>,
  payload: AsyncIterable<Buffer>,
  { limitBytes, deadlineMilliseconds = bodyDeadlineMilliseconds }: JsonBodyLimits,
): Promise<unknown> {
  const contentType = mediaType(headers['content-type'])
  const bytes = await within(deadlineMilliseconds, readAll(payload, limitBytes))
  if (bytes.length === 0) return undefined

  if (contentType !== 'application/json' && !contentType.endsWith('+json')) {
    throw new BerthError('unsupported_media_type', { reason: 'The body must be application/json.' })
  }
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') {
    throw new BerthError('unsupported_media_type', { reason: 'content-encoding: bodies must not be compressed.' })
  }
  return parseJson(bytes)
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
export async function within<Value>(milliseconds: number, reading: Promise<Value>): Promise<Value> {
  reading.catch(() => {}) // After the deadline nobody else hears how it ends.
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new BerthError('request_timeout')), milliseconds)
  })
  try {
    return await Promise.race([reading, late])
  } finally {
    clearTimeout(timer)
  }
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
export function parseJson(bytes: Uint8Array): unknown {
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
  checkValue(value)
  return value
}

/** Walks without recursion: the nesting is the sender's. */
function checkValue(root: unknown): void {
  const open: { value: unknown; depth: number }[] = [{ value: root, depth: 1 }]
  for (let next = open.pop(); next; next = open.pop()) {
    const { value, depth } = next
    if (typeof value === 'string') checkText(value)
    if (typeof value !== 'object' || value === null) continue
    if (depth > maxDepth)
      throw new BerthError('bad_request', { reason: `The body is nested deeper than ${maxDepth} levels.` })
    for (const key of Object.keys(value)) {
      if (key === '__proto__')
        throw new BerthError('bad_request', { reason: 'The body must not hold a key __proto__.' })
      checkText(key)
      open.push({ value: (value as Record<string, unknown>)[key], depth: depth + 1 })
    }
  }
}

/** Refuses what cannot be stored or sent on as it is. */
export function checkText(text: string): void {
  if (text.includes('\0')) throw new BerthError('bad_request', { reason: 'Text must not hold a NUL character.' })
  if (!text.isWellFormed()) throw new BerthError('bad_request', { reason: 'Text must not hold an unpaired surrogate.' })
}
