import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { BerthError } from '@berth/contract/errors.ts'
import { http } from '../http.ts'
import { egressError, egressFailureHeader } from './net-error.ts'

const limitMilliseconds = 5_000

/**
 * Why there is no tunnel to the server. Chromium says only that there is none, whatever its proxy has answered; so egress
 * is asked once more. Undefined when it tells nothing, or when there is one now.
 */
export async function tunnelFailure(url: string, proxyPort: number): Promise<BerthError | undefined> {
  const { hostname, port } = new URL(url)
  const request = http.request({
    ...{ host: '127.0.0.1', port: proxyPort, method: 'CONNECT', path: `${hostname}:${port || 443}`, agent: false },
    signal: AbortSignal.timeout(limitMilliseconds),
  })
  request.end()
  try {
    const [answer, socket] = (await once(request, 'connect')) as [IncomingMessage, Socket]
    socket.destroy()
    const failure = answer.headers[egressFailureHeader]
    return typeof failure === 'string' ? egressError(failure) : undefined
  } catch {
    return undefined // Chromium's word for it has to do.
  }
}
