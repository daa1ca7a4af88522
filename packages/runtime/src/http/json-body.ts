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
 * Parses JSON bodies strictly: only UTF-8, no `__proto__`, at most 100 levels, no NUL character (PostgreSQL cannot
 * store it) and no unpaired surrogates. An empty body counts as absent, whatever its content type.
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
      // The handler reads it from the request.
      if (request.routeOptions.config.streamsBody) return undefined
      const limitBytes = request.routeOptions.bodyLimit ?? app.initialConfig.bodyLimit ?? 1024 * 1024
      return readJsonBody(request.headers, payload, { limitBytes, deadlineMilliseconds })
    },
  )
}

interface JsonBodyLimits extends JsonBodyOptions {
  readonly limitBytes: number
  /** Members in which text may contain NUL, as in `Endpoint`. */
  readonly dataFields?: readonly string[] | undefined
}

/** Returns the parsed body, or undefined when there is none. */
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

/**
 * Stops waiting but does not stop the reading: destroying the stream would close the connection before the response is
 * sent.
 */
export function readWithin<Value>(milliseconds: number, reading: Promise<Value>): Promise<Value> {
  return within(milliseconds, reading, () => new BerthError('request_timeout'))
}

/** Rejects with `body_too_large` when there is more. */
export async function readAll(payload: AsyncIterable<Buffer>, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  // The connection must survive a rejected body, so that the client receives the response.
  const source = payload instanceof Readable ? payload.iterator({ destroyOnReturn: false }) : payload
  for await (const chunk of source) {
    length += chunk.length
    if (length > limitBytes) throw new BerthError('body_too_large', { limitBytes })
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, length)
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Parses one JSON text. Throws an error that describes the problem. */
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

/** Iterative, because the sender controls the depth. */
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
        throw new BerthError('bad_request', { reason: 'The body must not contain a key __proto__.' })
      check(key)
      const member = (value as Record<string, unknown>)[key]
      open.push({ value: member, depth: depth + 1, isData: isData || (depth === 1 && dataFields.includes(key)) })
    }
  }
}

/** Rejects text that cannot be stored or forwarded unchanged. */
export function checkText(text: string): void {
  if (text.includes('\0')) throw new BerthError('bad_request', { reason: 'Text must not contain a NUL character.' })
  checkWellFormed(text)
}

function checkWellFormed(text: string): void {
  if (!text.isWellFormed())
    throw new BerthError('bad_request', { reason: 'Text must not contain an unpaired surrogate.' })
}
