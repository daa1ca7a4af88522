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

/** Shorter than the time for which a server keeps an idle connection. */
const idleMilliseconds = 15_000
const maxResponseListeners = 20
/** Methods that are safe to repeat. */
const repeatable = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']
/**
 * Set in the response to a forwarded request for a session that the server does not have. The server has done nothing.
 */
export const misdirectedHeader = 'x-berth-misdirected'

/**
 * A request body that has not been read. Reading starts when the other server responds with 100 Continue, so a rejected
 * request can be forwarded again with its whole body.
 */
export class UnreadBody {
  readonly #source: IncomingMessage
  readonly #tellClient: () => void
  #isBegun = false

  constructor(source: IncomingMessage, tellClient: () => void) {
    this.#source = source
    this.#tellClient = tellClient
  }

  /** Whether part of it may have been read. */
  get isBegun(): boolean {
    return this.#isBegun
  }

  sendTo(outgoing: ClientRequest): void {
    this.#isBegun = true
    this.#tellClient()
    this.#source.pipe(outgoing)
  }

  /** Reads and discards the rest. */
  discard(): void {
    this.#source.resume()
  }
}

export interface Forward {
  readonly owner: string
  readonly address: URL
  /** The value of the signed header. */
  readonly signature: string
  /** The `Host` of the request, or the address where it arrived if it has none. */
  readonly host: string
  /** A body that this server has already read, or one that has not been read. */
  readonly body: string | Buffer | UnreadBody | undefined
}

/** Forwards requests to other servers, and streams their responses back unchanged. */
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

  /**
   * Resolves when the reply is complete or its client has disconnected. Rejects while another reply is still possible.
   */
  async forward(request: IncomingMessage, reply: FastifyReply, forward: Forward): Promise<void> {
    const gone = new AbortController()
    using _open = this.#forwards.add(forward.owner, () => gone.abort(new Error('the server is gone')))
    const signal = AbortSignal.any([abortedByClient(reply), gone.signal])
    // The client has disconnected.
    if (reply.raw.closed) return void reply.hijack()
    const { answer, outgoing } = await this.#ask(request, forward, signal)
    reply.hijack()
    reply.raw.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? '', endToEndHeaders(answer.rawHeaders))
    // Sends the headers of a stream before its first event.
    reply.raw.flushHeaders()
    // The listeners that count, limit and audit the response also use its end: Node.js would log a warning about a
    // leak.
    reply.raw.setMaxListeners(maxResponseListeners)
    // The end of either side ends the other. Nobody is left to report to.
    await pipeline(answer, reply.raw).catch(() => reply.raw.destroy())
    // The response came before the body, which the connection still waits for.
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
    // After the start of the response, its reader sees the error, and nobody reads the rest of the body.
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

/** Whether the request has a body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
