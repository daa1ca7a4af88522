import { type HostAndPort, hostText } from '@berth/contract/egress/host.ts'

/** As much as Chromium takes: cookies of one site alone can have 200 KB. */
const maxHeadBytes = 256 * 1024
const maxChunkLineBytes = 4 * 1024
const lineFeed = 0x0a

/** A request that must not go to a proxy: it cannot be read, or would have the proxy tell what only it may know. */
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
 * Brings the requests of one connection in plain HTTP into the form that a proxy takes: with the whole URL, and the
 * proxy's credentials. All of them go to the one destination of the connection. All other bytes stay as they are.
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

  /** What of the bytes that have come goes on now. Throws RequestRefused. */
  push(chunk: Buffer): Buffer {
    this.#rest = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk
    const sent: Buffer[] = []
    for (let taken = this.#take(); taken; taken = this.#take()) sent.push(taken)
    return sent.length === 1 ? (sent[0] as Buffer) : Buffer.concat(sent)
  }

  /** The next whole part; nothing when more bytes are needed. */
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
    // Empty lines before a request are allowed and mean nothing.
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
    // A proxy, told so by Max-Forwards, answers TRACE with all that it was sent, its credentials too.
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
    // The line end behind the bytes of a chunk is part of it.
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
  // Two lengths are two readings of what follows.
  if (encodings.length > 0 || lengths.size > 1 || !/^[0-9]{1,15}$/.test(length))
    throw new RequestRefused('400 Bad Request')
  return Number(length) === 0 ? { in: 'head' } : { in: 'body', left: Number(length) }
}
