import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { EgressProxy, EgressSettings, Upstream } from '@berth/contract/egress/egress-settings.ts'
import { type LoopbackServer, startHttpServer } from './loopback-server.ts'
import { directly } from './started-egress.ts'

/** A proxy that answers for every name itself, and says what it was asked. */
export interface FakeProxy extends LoopbackServer {
  /** `GET http://page.test/ Basic …`, or `CONNECT page.test:80 …`. */
  readonly asked: readonly string[]
}

export async function startFakeProxy(name: string, connectStatus = 200): Promise<FakeProxy> {
  const asked: string[] = []
  const note = ({ method, url, headers }: IncomingMessage) =>
    asked.push([method, url, headers['proxy-authorization']].filter(Boolean).join(' '))
  const origin = createServer((request, response) => response.end(`${name} tunnels ${request.url}`))
  const proxy = await startHttpServer((request, response) => {
    note(request)
    response.setHeader('X-Kernel-Proxy-Error', 'of-the-proxy').end(name)
  })
  proxy.server.on('connect', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    note(request)
    socket.write(`HTTP/1.1 ${connectStatus} Said\r\n\r\n`)
    if (connectStatus !== 200) return socket.end()
    if (head.length > 0) socket.unshift(head)
    return origin.emit('connection', socket)
  })
  return Object.assign(proxy, { asked })
}

/** Settings under which everything leaves by the server. */
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
