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
/** Doing it twice is the same as doing it once. */
const repeatable = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']

interface Forward {
  readonly owner: string
  readonly address: URL
  /** The signed header. */
  readonly signature: string
  /** What the request names in `Host`, or where it came in when it names nothing. */
  readonly host: string
  /** In the place of a body that this server has read already. */
  readonly body?: string | Buffer | undefined
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
    const answer = await this.#ask(request, forward, signal)
    reply.hijack()
    reply.raw.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? '', endToEndHeaders(answer.rawHeaders))
    // The head of a stream is sent before its first event.
    reply.raw.flushHeaders()
    // The end of either side ends the other. There is nobody left to report to.
    await pipeline(answer, reply.raw).catch(() => reply.raw.destroy())
  }

  async #ask(request: IncomingMessage, forward: Forward, signal: AbortSignal): Promise<IncomingMessage> {
    const outgoing = this.#open(request, forward, signal)
    let isConnected = false
    outgoing.once('socket', (socket) => {
      limitConnecting(socket)
      isConnected = !socket.connecting
      socket.once('connect', () => {
        isConnected = true
      })
    })
    // After the answer has begun, whoever reads it learns of its end there.
    outgoing.on('error', () => request.resume())
    if ('body' in forward) outgoing.end(forward.body)
    else if (hasBody(request)) request.pipe(outgoing)
    else outgoing.end()
    try {
      const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
      return answer
    } catch (cause) {
      // What was sent may have been done.
      const wasSent = isConnected && !repeatable.includes(request.method ?? '')
      throw new BerthError(wasSent ? 'operation_interrupted' : 'session_unreachable', undefined, { cause })
    }
  }

  #open(request: IncomingMessage, forward: Forward, signal: AbortSignal): ClientRequest {
    const { address, signature, host } = forward
    const { method = 'GET', url = '/', rawHeaders } = request
    const protocol = address.protocol as 'http:' | 'https:'
    // The client has been told to go on by this server.
    const replaced = ['host', 'expect', forwardedHeader, ...('body' in forward ? ['content-length'] : [])]
    const headers = endToEndHeaders(rawHeaders, replaced)
    headers.push('host', host, forwardedHeader, signature)
    if ('body' in forward) headers.push('content-length', `${Buffer.byteLength(forward.body ?? '')}`)
    else if (request.headers['transfer-encoding'] !== undefined) headers.push('transfer-encoding', 'chunked')
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
