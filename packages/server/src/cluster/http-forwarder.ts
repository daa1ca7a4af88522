import { once } from 'node:events'
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest, Agent as TlsAgent } from 'node:https'
import { pipeline } from 'node:stream/promises'
import { BerthError } from '@berth/contract/errors.ts'
import { abortedByClient } from '@berth/runtime/http/mount.ts'
import type { FastifyReply } from 'fastify'
import { endToEndHeaders } from './end-to-end-headers.ts'
import type { OpenForwards } from './open-forwards.ts'
import { limitConnecting } from './peers/peer-connection.ts'
import { forwardedHeader } from './peers/peer-signature.ts'

/** Shorter than the time for which a server keeps a connection that is not used. */
const idleMilliseconds = 15_000
const maxResponseListeners = 20
/** Doing it twice is the same as doing it once. */
const repeatable = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']
/** On the answer of a server to a forwarded request whose session it does not have: it has done nothing. */
export const misdirectedHeader = 'x-berth-misdirected'

/** A body that has not arrived. It is read when the other server answers 100 Continue, so that a refusal leaves it whole. */
export class UnreadBody {
  readonly #source: IncomingMessage
  readonly #tellClient: () => void
  #isBegun = false

  constructor(source: IncomingMessage, tellClient: () => void) {
    this.#source = source
    this.#tellClient = tellClient
  }

  /** Whether some of it may be gone. */
  get isBegun(): boolean {
    return this.#isBegun
  }

  sendTo(outgoing: ClientRequest): void {
    this.#isBegun = true
    this.#tellClient()
    this.#source.pipe(outgoing)
  }

  /** Reads the rest and drops it. */
  discard(): void {
    this.#source.resume()
  }
}

export interface Forward {
  readonly owner: string
  readonly address: URL
  /** The signed header. */
  readonly signature: string
  /** What the request names in `Host`, or where it came in when it names nothing. */
  readonly host: string
  /** What this server has read already, or a body that has not arrived. */
  readonly body: string | Buffer | UnreadBody | undefined
}

/** Passes requests on to other servers, and their answers back, as they are and while they come. */
export class HttpForwarder {
  readonly #agents = {
    'http:': new Agent({ keepAlive: true, timeout: idleMilliseconds }),
    'https:': new TlsAgent({ keepAlive: true, timeout: idleMilliseconds }),
  } as const

  readonly #forwards: OpenForwards

  constructor(forwards: OpenForwards) {
    this.#forwards = forwards
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy()
  }

  /** Resolves when the reply is answered, or nobody is left to answer. Rejects while it still can be answered otherwise. */
  async forward(request: IncomingMessage, reply: FastifyReply, forward: Forward): Promise<void> {
    const gone = new AbortController()
    using _open = this.#forwards.add(forward.owner, () => gone.abort(new Error('the server is gone')))
    const signal = AbortSignal.any([abortedByClient(reply), gone.signal])
    // Nobody is left to answer.
    if (reply.raw.closed) return void reply.hijack()
    const { answer, outgoing } = await this.#ask(request, forward, signal)
    reply.hijack()
    reply.raw.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? '', endToEndHeaders(answer.rawHeaders))
    // The head of a stream is sent before its first event.
    reply.raw.flushHeaders()
    // Those that count, bound and audit the response listen for its end too: Node.js would warn of a leak in the log.
    reply.raw.setMaxListeners(maxResponseListeners)
    // The end of either side ends the other. There is nobody left to report to.
    await pipeline(answer, reply.raw).catch(() => reply.raw.destroy())
    // It was answered without its body: the connection waits for that.
    if (forward.body instanceof UnreadBody && !forward.body.isBegun) outgoing.destroy()
  }

  async #ask(request: IncomingMessage, forward: Forward, signal: AbortSignal) {
    const { body } = forward
    const outgoing = this.#open(request, forward, signal)
    let isConnected = false
    let isAnswered = false
    outgoing.once('socket', (socket) => {
      limitConnecting(socket)
      isConnected = !socket.connecting
      socket.once('connect', () => {
        isConnected = true
      })
    })
    // After the answer has begun, whoever reads it learns of its end there, and nobody reads the rest of the body.
    outgoing.on('error', () => isAnswered && request.resume())
    if (body instanceof UnreadBody) {
      outgoing.once('continue', () => body.sendTo(outgoing))
      outgoing.flushHeaders()
    } else outgoing.end(body)
    try {
      const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
      if (answer.headers[misdirectedHeader] === undefined) {
        isAnswered = true
        if (body instanceof UnreadBody && !body.isBegun) body.discard()
        return { answer, outgoing }
      }
    } catch (cause) {
      const wasSent = body instanceof UnreadBody ? body.isBegun : isConnected
      const isUnsure = wasSent && !repeatable.includes(request.method ?? '')
      throw new BerthError(isUnsure ? 'operation_interrupted' : 'session_unreachable', undefined, { cause })
    }
    outgoing.destroy()
    throw new BerthError('session_unreachable', undefined, { cause: new Error('the server no longer has the session') })
  }

  #open(request: IncomingMessage, forward: Forward, signal: AbortSignal): ClientRequest {
    const { address, signature, host, body } = forward
    const { method = 'GET', url = '/', rawHeaders } = request
    const protocol = address.protocol as 'http:' | 'https:'
    const isRead = !(body instanceof UnreadBody) && body !== undefined
    const replaced = ['host', 'expect', forwardedHeader, ...(isRead ? ['content-length'] : [])]
    const headers = endToEndHeaders(rawHeaders, replaced)
    headers.push('host', host, forwardedHeader, signature)
    if (isRead) headers.push('content-length', `${Buffer.byteLength(body)}`)
    else if (request.headers['transfer-encoding'] !== undefined) headers.push('transfer-encoding', 'chunked')
    if (body instanceof UnreadBody) headers.push('expect', '100-continue')
    const open = protocol === 'https:' ? httpsRequest : httpRequest
    return open({
      protocol,
      hostname: address.hostname.replace(/^\[|\]$/g, ''),
      port: address.port,
      method,
      path: url,
      headers,
      agent: this.#agents[protocol],
      signal,
    })
  }
}

/** Whether a body follows the head. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
