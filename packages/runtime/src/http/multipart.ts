import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import { BerthError } from '@berth/contract/errors.ts'
import { Busboy, type BusboyInstance } from '@fastify/busboy' // Maintained by Fastify. The server and the agent's plain HTTP server share this parser.
import { checkText, readWithin } from './json-body.ts'

const stallLimitMilliseconds = 30_000
const maxTextBytes = 64 * 1024
const maxFieldNameLength = 1024
/** Allows for fields of newer clients. */
const maxUnknownParts = 100

/**
 * `extensions[0][name]`, `extensions.0.name` and `extensions[0].name` are all `['extensions', '0', 'name']`; `[]` is
 * `''`.
 */
export type FieldPath = readonly string[]

export interface TextPart {
  readonly kind: 'text'
  /** In the client's spelling, for messages. */
  readonly field: string
  readonly path: FieldPath
  readonly text: string
}

export interface FilePart {
  readonly kind: 'file'
  readonly field: string
  readonly path: FieldPath
  /** Must be read before the next part is requested. The rest is discarded then. Fails with a BerthError. */
  readonly content: Readable
}

export type Part = TextPart | FilePart

export interface MultipartOptions {
  readonly headers: IncomingHttpHeaders
  /** Unknown parts are read and discarded. */
  readonly isKnown: (path: FieldPath) => boolean
  /**
   * Whether a known field is a file. Decided by name, because clients also send file names with texts and content types
   * with both.
   */
  readonly isFile: (path: FieldPath) => boolean
  readonly maxParts: number
  readonly maxFileBytes: number
  /** How long the client may pause. */
  readonly stallMilliseconds?: number
}

/**
 * Yields the parts of a `multipart/form-data` body as they arrive. Fails with a BerthError when the body is malformed,
 * too large, stalled or incomplete. The rest is then read and discarded, so that the client receives the response.
 */
export async function* readMultipart(body: Readable, options: MultipartOptions): AsyncGenerator<Part, void, void> {
  const first = await firstChunk(body, options)
  const queue = new PartQueue(body, first, options)
  try {
    for (;;) {
      const next = await queue.next()
      if (!next) return
      if (next.kind === 'text') {
        yield next
        continue
      }
      const { source, ...part } = next
      yield { ...part, content: Readable.from(chunksOf(source), { objectMode: false }) }
      if (source.destroyed && !source.readableEnded) throw toBodyError(source.errored)
      source.resume()
    }
  } finally {
    queue.close()
  }
}

type QueuedPart = TextPart | (Omit<FilePart, 'content'> & { readonly source: Readable })

/** Connects the parser, which pushes, to a reader, who pulls. A file that is not read pauses the parser. */
class PartQueue {
  readonly #body: Readable
  readonly #parser: BusboyInstance
  readonly #options: MultipartOptions
  readonly #parts: QueuedPart[] = []
  readonly #files = new Set<Readable>()
  readonly #stall: NodeJS.Timeout
  #knownParts = 0
  #end: { readonly error?: Error } | undefined
  #changed = Promise.withResolvers<void>()

  constructor(body: Readable, first: Buffer, options: MultipartOptions) {
    this.#body = body
    this.#options = options
    this.#parser = openParser(options, first)
    this.#parser.on('field', (name, text, _isNameCut, isCut) => this.#addText(name, text, isCut))
    this.#parser.on('file', (name, source) => this.#addFile(name, source))
    this.#parser.on('partsLimit', () => this.#finish(tooManyParts(options.maxParts + maxUnknownParts)))
    this.#parser.on('error', (error: unknown) => this.#finish(toBodyError(error)))
    this.#parser.on('finish', () => this.#finish())

    this.#stall = setTimeout(() => this.#onStall(), options.stallMilliseconds ?? stallLimitMilliseconds)
    body.on('data', () => this.#stall.refresh())
    body.on('error', () => this.#finish(brokenOff()))
    body.on('close', () => {
      if (!body.readableEnded) this.#finish(brokenOff())
    })
    this.#parser.write(first)
    body.pipe(this.#parser)
  }

  /** Returns the next part, or undefined at the end of the body. */
  async next(): Promise<QueuedPart | undefined> {
    for (;;) {
      const part = this.#parts.shift()
      if (part) return part
      if (this.#end?.error) throw this.#end.error
      if (this.#end) return undefined
      await this.#changed.promise
      this.#changed = Promise.withResolvers()
    }
  }

  close(): void {
    clearTimeout(this.#stall)
    this.#finish(brokenOff())
    for (const file of this.#files) file.destroy()
    this.#body.unpipe(this.#parser)
    this.#body.resume()
  }

  #addText(field: string | undefined, text: string, isCut: boolean): void {
    this.#add(field, (field, path) => {
      if (isCut) throw new BerthError('part_too_large', { field, limitBytes: maxTextBytes })
      checkText(text)
      this.#parts.push({ kind: 'text', field, path, text })
    })
  }

  #addFile(field: string | undefined, source: Readable): void {
    // Parser errors arrive whether or not somebody reads. A destroyed stream keeps its error for a later reader.
    source.on('error', (error) => source.destroy(toBodyError(error)))
    source.on('close', () => this.#files.delete(source))
    this.#files.add(source)
    const { isKnown, maxFileBytes } = this.#options
    const onLimit = () =>
      this.#finish(new BerthError('part_too_large', { field: field ?? '', limitBytes: maxFileBytes }))
    source.on('limit', onLimit)
    if (field && !isKnown(parseFieldPath(field))) {
      source.resume()
      return
    }
    this.#add(field, (field, path) => this.#parts.push({ kind: 'file', field, path, source }))
  }

  #add(field: string | undefined, add: (field: string, path: FieldPath) => void): void {
    if (this.#end) return
    try {
      const name = checkFieldName(field)
      this.#knownParts += 1
      if (this.#knownParts > this.#options.maxParts) throw tooManyParts(this.#options.maxParts)
      add(name, parseFieldPath(name))
      this.#changed.resolve()
    } catch (error) {
      this.#finish(error as Error)
    }
  }

  #finish(error?: Error): void {
    if (this.#end) return
    this.#end = error ? { error } : {}
    if (error) for (const file of this.#files) file.destroy(error)
    this.#changed.resolve()
  }

  #onStall(): void {
    // The reader is slow, not the client.
    if (this.#body.isPaused() || this.#parser.writableNeedDrain) this.#stall.refresh()
    else this.#finish(new BerthError('request_timeout'))
  }
}

function openParser(options: MultipartOptions, first: Buffer): BusboyInstance {
  const { headers, isKnown, isFile, maxParts, maxFileBytes } = options
  // An unknown part may be large, and only files are streamed instead of collected.
  const isStreamed = (path: FieldPath) => !isKnown(path) || isFile(path)
  const contentType = withOwnBoundary(headers['content-type'] ?? '', first)
  try {
    return new Busboy({
      headers: { ...headers, 'content-type': contentType },
      isPartAFile: (field) => field !== undefined && isStreamed(parseFieldPath(field)),
      limits: { parts: maxParts + maxUnknownParts, fileSize: maxFileBytes, fieldSize: maxTextBytes, headerPairs: 20 },
    })
  } catch (error) {
    throw toBodyError(error)
  }
}

/** Empty when there is no body. */
async function firstChunk(body: Readable, { headers, stallMilliseconds }: MultipartOptions): Promise<Buffer> {
  if (!/^multipart\/form-data\s*(;|$)/i.test(headers['content-type'] ?? '')) {
    throw new BerthError('unsupported_media_type', { reason: 'The body must be multipart/form-data.' })
  }
  const chunks = body.iterator({ destroyOnReturn: false })
  try {
    const { value } = await readWithin(stallMilliseconds ?? stallLimitMilliseconds, chunks.next())
    return value ?? Buffer.alloc(0)
  } catch (error) {
    throw error instanceof BerthError ? error : brokenOff()
  } finally {
    void chunks.return?.()
  }
}

/**
 * The official TypeScript client encodes a body again when it sends it to a session's own address, but keeps the
 * boundary of the first encoding in the header. The boundary at the start of the body is the real one.
 */
function withOwnBoundary(contentType: string, first: Buffer): string {
  const [, declared] = /;\s*boundary="?([^";]{1,70})"?\s*(;|$)/i.exec(contentType) ?? []
  const [line = ''] = first.subarray(0, 80).toString('latin1').split('\r\n', 1)
  if (declared === undefined || line.startsWith(`--${declared}`)) return contentType
  return /^--[\w'()+,./:=?-]{1,70}$/.test(line) ? `multipart/form-data; boundary="${line.slice(2)}"` : contentType
}

async function* chunksOf(source: Readable): AsyncGenerator<Buffer, void, void> {
  try {
    yield* source.iterator({ destroyOnReturn: false })
  } catch (error) {
    throw toBodyError(error)
  }
}

export function parseFieldPath(field: string): FieldPath {
  const path: string[] = []
  // A name in brackets may contain dots or any other text: `env_vars[A.B]`.
  for (const [, bracketed, plain] of field.matchAll(/\[([^\]]*)\]|([^.[\]]+)/g)) path.push(bracketed ?? plain ?? '')
  return path
}

function checkFieldName(field: string | undefined): string {
  if (!field) throw new BerthError('bad_request', { reason: 'The multipart body has a part without a name.' })
  if (field.length > maxFieldNameLength) {
    throw new BerthError('bad_request', { reason: 'The multipart body has a part whose name is too long.' })
  }
  checkText(field)
  return field
}

function tooManyParts(maxParts: number): BerthError {
  return new BerthError('bad_request', { reason: `The multipart body must have at most ${maxParts} parts.` })
}

function brokenOff(): BerthError {
  return new BerthError('bad_request', { reason: 'The body ended early.' })
}

function toBodyError(error: unknown): BerthError {
  if (error instanceof BerthError) return error
  const { message } = (error ?? new Error('unread')) as Error
  return new BerthError('bad_request', { reason: `The multipart body is broken: ${message}.` }, { cause: error })
}
