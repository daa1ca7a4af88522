import { type HostAndPort, hostText } from '@berth/contract/egress/host.ts'

/** Chromium's own limit: the cookies of one site can take 200 KB. */
const maxHeadBytes = 256 * 1024
const maxChunkLineBytes = 4 * 1024
const lineFeed = 0x0a

/** A request that must not reach the proxy: it is malformed, or would make the proxy reveal its credentials. */
export class RequestRefused extends Error {
  readonly status: string

  constructor(status: string) {
    super(status)
    this.status = status
  }

  get answer(): string {
    return `HTTP/1.1 ${this.status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`
  }
}

type State =
  | { readonly in: 'head' }
  | { readonly in: 'body'; left: number }
  | { readonly in: 'chunk-line' | 'trailer' }
  | { readonly in: 'chunk'; left: number }
  | { readonly in: 'upgraded' }

/**
 * Rewrites the plain HTTP requests of one connection for a proxy: adds the absolute URL and the proxy's credentials.
 * All requests go to the connection's destination. All other bytes stay unchanged.
 */
export class RequestRewriter {
  readonly #authority: string
  readonly #authorization: string | undefined
  #state: State = { in: 'head' }
  #rest: Buffer = Buffer.alloc(0)

  constructor({ host, port }: HostAndPort, authorization: string | undefined) {
    this.#authority = port === 80 ? hostText(host) : `${hostText(host)}:${port}`
    this.#authorization = authorization
  }

  /** Returns the bytes that can be sent now. Throws RequestRefused. */
  push(chunk: Buffer): Buffer {
    this.#rest = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk
    const sent: Buffer[] = []
    for (let taken = this.#take(); taken; taken = this.#take()) sent.push(taken)
    return sent.length === 1 ? (sent[0] as Buffer) : Buffer.concat(sent)
  }

  /** Takes the next complete part, or returns undefined when more bytes are needed. */
  #take(): Buffer | undefined {
    const state = this.#state
    if (this.#rest.length === 0) return undefined
    switch (state.in) {
      case 'upgraded':
        return this.#cut(this.#rest.length)
      case 'head':
        return this.#takeHead()
      case 'body':
      case 'chunk': {
        const part = this.#cut(Math.min(state.left, this.#rest.length))
        state.left -= part.length
        if (state.left === 0) this.#state = { in: state.in === 'body' ? 'head' : 'chunk-line' }
        return part
      }
      case 'chunk-line':
      case 'trailer':
        return this.#takeLine(state.in)
    }
  }

  #takeHead(): Buffer | undefined {
    // Empty lines before a request are allowed and ignored.
    while (this.#rest[0] === 0x0d || this.#rest[0] === lineFeed) this.#cut(1)
    const [end] = /\r?\n\r?\n/.exec(this.#rest.toString('latin1', 0, maxHeadBytes))?.slice(0, 1) ?? []
    if (end === undefined) {
      if (this.#rest.length >= maxHeadBytes) throw new RequestRefused('431 Request Header Fields Too Large')
      return undefined
    }
    const length = this.#rest.indexOf(end, 0, 'latin1') + end.length
    return Buffer.from(this.#rewrite(this.#cut(length).toString('latin1')), 'latin1')
  }

  #rewrite(head: string): string {
    const [requestLine = '', ...lines] = head.trimEnd().split(/\r?\n/)
    const [, method = '', target = '', version = ''] =
      /^([!#$%&'*+.^_`|~\w-]+) (\/[\x21-\x7e\x80-\xff]*|\*) (HTTP\/1\.[01])$/.exec(requestLine) ?? []
    // With Max-Forwards, a proxy answers TRACE with the whole request, including its credentials.
    if (method.toUpperCase() === 'TRACE') throw new RequestRefused('405 Method Not Allowed')
    if (!method || lines.some((line) => !/^[^\s:]+:/.test(line))) throw new RequestRefused('400 Bad Request')

    this.#state = stateAfter(lines)
    const kept = lines.filter((line) => !/^proxy-authorization:/i.test(line))
    const url = `http://${this.#authority}${target === '*' ? '' : target}`
    const credentials = this.#authorization === undefined ? [] : [`Proxy-Authorization: ${this.#authorization}`]
    return [`${method} ${url} ${version}`, ...kept, ...credentials, '', ''].join('\r\n')
  }

  #takeLine(state: 'chunk-line' | 'trailer'): Buffer | undefined {
    const end = this.#rest.indexOf(lineFeed)
    if (end === -1 && this.#rest.length < maxChunkLineBytes) return undefined
    if (end === -1 || end >= maxChunkLineBytes) throw new RequestRefused('400 Bad Request')
    const bytes = this.#cut(end + 1)
    const line = bytes.toString('latin1').replace(/\r?\n$/, '')
    if (state === 'trailer') {
      if (line === '') this.#state = { in: 'head' }
      return bytes
    }
    const [, digits = ''] = /^([0-9a-f]{1,12})[ \t]*(?:;.*)?$/i.exec(line) ?? []
    if (digits === '') throw new RequestRefused('400 Bad Request')
    const size = Number.parseInt(digits, 16)
    // The line end after a chunk belongs to it.
    this.#state = size === 0 ? { in: 'trailer' } : { in: 'chunk', left: size + 2 }
    return bytes
  }

  #cut(length: number): Buffer {
    const part = this.#rest.subarray(0, length)
    this.#rest = this.#rest.subarray(length)
    return part
  }
}

function stateAfter(lines: readonly string[]): State {
  const values = (name: string) =>
    lines.filter((line) => line.toLowerCase().startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).trim())
  const encodings = values('transfer-encoding')
  const lengths = new Set(values('content-length'))
  if (values('upgrade').length > 0 && values('connection').some((value) => /\bupgrade\b/i.test(value)))
    return { in: 'upgraded' }
  if (encodings.length === 0 && lengths.size === 0) return { in: 'head' }
  const [length = ''] = lengths
  if (encodings.length === 1 && lengths.size === 0 && encodings[0]?.toLowerCase() === 'chunked')
    return { in: 'chunk-line' }
  // Conflicting lengths would let the proxy and egress parse the stream differently (request smuggling).
  if (encodings.length > 0 || lengths.size > 1 || !/^[0-9]{1,15}$/.test(length))
    throw new RequestRefused('400 Bad Request')
  return Number(length) === 0 ? { in: 'head' } : { in: 'body', left: Number(length) }
}
