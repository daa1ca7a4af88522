import { request as sendRequest } from 'node:http'
import type { Socket } from 'node:net'
import { EgressFailure, type FailureKind } from '../egress-failure.ts'

interface HttpTunnelOptions {
  /** `host:port`, resolved by the proxy. */
  readonly target: string
  readonly authorization: string | undefined
  readonly signal: AbortSignal
}

/** The proxy opens no tunnel to this destination. It may still accept plain HTTP requests. */
export class TunnelRefused extends EgressFailure {}

const maxHeadBytes = 64 * 1024

/** Requests a tunnel over a connection to an HTTP proxy. The connection then is the tunnel, or is destroyed. */
export function openHttpTunnel(socket: Socket, { target, authorization, signal }: HttpTunnelOptions): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const abort = () => socket.destroy(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  const request = sendRequest({
    createConnection: () => socket,
    method: 'CONNECT',
    path: target,
    headers: { Host: target, ...(authorization !== undefined && { 'Proxy-Authorization': authorization }) },
    maxHeaderSize: maxHeadBytes,
  })
  request.once('connect', ({ statusCode = 0 }, _socket, head: Buffer) => {
    if (statusCode < 200 || statusCode > 299) return reject(refusalOf(statusCode))
    if (head.length > 0) socket.unshift(head)
    resolve(socket)
  })
  request.on('error', (error) => reject(signal.aborted ? signal.reason : failureOf(error)))
  // Node.js reports no error when the proxy closes the connection after a complete message that is not a response.
  request.once('close', () => reject(new TunnelRefused('proxy-failed')))
  request.end()
  return promise
    .catch((error: unknown) => {
      socket.destroy()
      throw error
    })
    .finally(() => signal.removeEventListener('abort', abort))
}

/** Translates the status of a refused CONNECT request. */
function refusalOf(status: number): EgressFailure {
  if (status === 407) return new EgressFailure('proxy-rejected')
  if (status === 401 || status === 403) return new TunnelRefused('proxy-rejected')
  if (status === 408 || status === 504) return new EgressFailure('proxy-timeout')
  const isOfDestination = status >= 500 && status !== 501
  const kind: FailureKind = 'proxy-failed'
  return isOfDestination ? new EgressFailure(kind) : new TunnelRefused(kind)
}

function failureOf(error: unknown): unknown {
  return (error as NodeJS.ErrnoException).code === undefined ? error : new TunnelRefused('proxy-failed')
}
