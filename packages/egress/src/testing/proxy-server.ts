import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { EgressProxy, EgressSettings, Upstream } from '@berth/contract/egress/egress-settings.ts'
import { type LoopbackServer, startHttpServer, startTcpServer } from './loopback-server.ts'
import { directly } from './started-egress.ts'
import { textOf } from './test-machine.ts'

/** A proxy that answers for every name itself and records its requests. */
export interface FakeProxy extends LoopbackServer {
  /** `CONNECT page.test:80 Basic …`, or `POST http://page.test/ Basic … the body`. */
  readonly requests: readonly string[]
}

interface FakeProxyOptions {
  /** The status of responses to CONNECT. 0 closes the connection without a response. */
  readonly connectStatus?: number
  /** The status of responses to other requests. */
  readonly status?: number
}

export async function startFakeProxy(
  name: string,
  { connectStatus = 200, status = 200 }: FakeProxyOptions = {},
): Promise<FakeProxy> {
  const requests: string[] = []
  const note = ({ method, url, headers }: IncomingMessage, body = '') =>
    requests.push([method, url, headers['proxy-authorization'], body].filter(Boolean).join(' '))
  const origin = createServer((request, response) => response.end(`${name} tunnels ${request.url}`))
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    note(request, await textOf(request))
    if (status === 407) response.setHeader('proxy-authenticate', 'Basic realm="x"')
    response.writeHead(status).end(name)
  }
  const proxy = await startHttpServer((request, response) => void answer(request, response))
  proxy.server.on('connect', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    note(request)
    if (connectStatus === 0) return socket.end()
    socket.write(`HTTP/1.1 ${connectStatus} Said\r\n\r\n`)
    if (connectStatus !== 200) return socket.end()
    if (head.length > 0) socket.unshift(head)
    return origin.emit('connection', socket)
  })
  return Object.assign(proxy, { requests })
}

/** A SOCKS5 proxy (RFC 1928 and 1929) that requires these credentials and answers requests for every name itself. */
export function startSocksProxy({
  username,
  password,
}: {
  readonly username: string
  readonly password: string
}): Promise<LoopbackServer> {
  return startTcpServer((socket) => {
    const serve = async () => {
      await once(socket, 'data')
      socket.write(Buffer.from([5, 2]))
      const [given] = (await once(socket, 'data')) as [Buffer]
      const [length = 0] = given.subarray(1)
      const said = [given.subarray(2, 2 + length), given.subarray(3 + length)].map(String)
      const isRight = said.join() === [username, password].join()
      socket.write(Buffer.from([1, isRight ? 0 : 1]))
      if (!isRight) return socket.end()
      const [connectRequest] = (await once(socket, 'data')) as [Buffer]
      const name = connectRequest.subarray(5, -2).toString()
      socket.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
      const [request] = (await once(socket, 'data')) as [Buffer]
      const path = String(request).split(' ')[1]
      return socket.end(
        `HTTP/1.1 200 OK\r\n\r\nsocks ${name}:${connectRequest.readUInt16BE(connectRequest.length - 2)} ${path}`,
      )
    }
    serve().catch(() => socket.destroy())
  })
}

/** Settings under which everything leaves through the server. */
export function through(port: number, more: Partial<Upstream> = {}, proxy: Partial<EgressProxy> = {}): EgressSettings {
  return { ...directly, proxy: proxyAt(port, more, proxy) }
}

export function proxyAt(port: number, more: Partial<Upstream> = {}, proxy: Partial<EgressProxy> = {}): EgressProxy {
  return {
    upstreams: [{ protocol: 'http', host: '127.0.0.1', port, ...more }],
    bypass_hosts: [],
    is_operators: false,
    ...proxy,
  }
}
