import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from 'node:net'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'
import { WebSocketServer } from 'ws'

const certificates = join(import.meta.dirname, 'certificates')
const readPem = (name: string) => readFileSync(join(certificates, `${name}.pem`), 'utf8')
/** Signs the certificates of exit proxies for https. No browser trusts it by default. */
export const testCaBundle = readPem('ca')
const tlsOptions = { isServer: true, cert: readPem('server'), key: readPem('server-key') }
const bigBytes = 24 * 1024 * 1024

export interface Credentials {
  readonly username: string
  readonly password: string
}

/** A proxy on loopback that simulates all destinations: it answers for every name itself and connects to nothing. */
export interface ExitProxy extends AsyncDisposable {
  readonly port: number
  /** `GET http://page.test/`, `CONNECT secure.test:443`, `SOCKS page.test:80`, in order. */
  readonly seen: readonly string[]
  readonly connections: number
  /** How often it had to request credentials. */
  readonly challenges: number
  /** Resolves when this entry has been seen. */
  untilSeen(entry: string): Promise<void>
  /** Closes all connections, including those that a browser has preconnected. */
  closeConnections(): Promise<void>
}

interface ExitProxyOptions {
  /** The title of its pages. */
  readonly name: string
  readonly credentials?: Credentials
  readonly protocol?: 'http' | 'https' | 'socks5'
}

export async function startExitProxy({ name, credentials, protocol = 'http' }: ExitProxyOptions): Promise<ExitProxy> {
  const seen: string[] = []
  const sockets = new Set<Socket>()
  const counts = { connections: 0, challenges: 0 }
  const note = (entry: string) => {
    seen.push(entry)
    server.emit('seen')
  }
  const challenge = () => {
    counts.challenges += 1
  }
  const parts = { internet: startSimulatedInternet(name), credentials, note, challenge }
  const server = protocol === 'socks5' ? socksProxy(parts) : httpProxy(parts)
  if (protocol === 'https') secure(server)
  server.on('connection', (socket: Socket) => {
    counts.connections += 1
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0) server.emit('unused')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    get connections() {
      return counts.connections
    },
    get challenges() {
      return counts.challenges
    },
    async untilSeen(entry) {
      while (!seen.includes(entry)) await once(server, 'seen')
    },
    async closeConnections() {
      for (const socket of sockets) socket.destroy()
      if (sockets.size > 0) await once(server, 'unused')
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

interface ProxyParts {
  readonly internet: SimulatedInternet
  readonly credentials: Credentials | undefined
  readonly note: (entry: string) => void
  readonly challenge: () => void
}

function httpProxy({ internet, credentials, note, challenge }: ProxyParts): Server {
  const { username, password } = credentials ?? {}
  const expected = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  const isAdmitted = ({ headers }: IncomingMessage) => !credentials || headers['proxy-authorization'] === expected
  const server = createServer((request, response) => {
    if (isAdmitted(request)) {
      note(`${request.method} ${request.url}`)
      return internet.answer(request, response)
    }
    challenge()
    response.writeHead(407, { 'proxy-authenticate': 'Basic realm="exit"' }).end()
  })
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    if (isAdmitted(request)) {
      note(`CONNECT ${request.url}`)
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      return internet.serve(socket, Number(request.url?.split(':').at(-1)))
    }
    challenge()
    socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="exit"\r\n\r\n')
  })
  return server
}

/** RFC 1928 and RFC 1929, for clients that send each message in one piece. */
function socksProxy({ internet, credentials, note, challenge }: ProxyParts): TcpServer {
  const next = async (socket: Socket): Promise<Buffer> => (await once(socket, 'data'))[0]
  const negotiate = async (socket: Socket) => {
    const [, , ...methods] = await next(socket)
    const method = credentials ? 2 : 0
    if (!methods.includes(method)) return socket.end(Buffer.from([5, 255]))
    socket.write(Buffer.from([5, method]))
    if (credentials) {
      const login = await next(socket)
      const nameEnd = 2 + (login[1] ?? 0)
      const isRight =
        login.toString('utf8', 2, nameEnd) === credentials.username &&
        login.toString('utf8', nameEnd + 1) === credentials.password
      if (!isRight) challenge()
      socket.write(Buffer.from([1, isRight ? 0 : 1]))
      if (!isRight) return socket.end()
    }
    const asked = await next(socket)
    const port = asked.readUInt16BE(asked.length - 2)
    const host = asked[3] === 1 ? asked.subarray(4, 8).join('.') : asked.toString('latin1', 5, asked.length - 2)
    note(`SOCKS ${host}:${port}`)
    socket.pause()
    socket.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]))
    return internet.serve(socket, port)
  }
  return createTcpServer((socket) => void negotiate(socket).catch(() => socket.destroy()))
}

/** Wraps a server in TLS. */
function secure(server: TcpServer): void {
  const [serve] = server.listeners('connection')
  server.off('connection', serve as () => void)
  server.on('connection', (socket: Socket) => {
    serve?.call(
      server,
      new TLSSocket(socket, tlsOptions).on('error', () => {}),
    )
  })
}

interface SimulatedInternet {
  answer(request: IncomingMessage, response: ServerResponse): void
  /** Acts as the destination of a tunnel, with TLS on port 443. */
  serve(socket: Socket, port: number): void
}

function startSimulatedInternet(name: string): SimulatedInternet {
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const path = URL.parse(request.url ?? '', 'http://internet.test')?.pathname
    if (path === '/big') return void response.end(Buffer.alloc(bigBytes, name))
    if (path === '/endless') return void response.write('begin')
    if (path === '/ip') return void response.end(JSON.stringify({ ip: '203.0.113.9' }))
    response.setHeader('content-type', 'text/html')
    response.end(`<!doctype html><link rel=icon href="data:,"><title>${name}</title><p>${name}`)
  }
  const server = createServer(answer)
  const websockets = new WebSocketServer({ server })
  websockets.on('connection', (socket) => {
    socket.on('message', (text) => socket.send(`${name} ${text}`))
    socket.on('error', () => {})
  })
  return {
    answer,
    serve: (socket, port) => {
      const served = port === 443 ? new TLSSocket(socket, tlsOptions).on('error', () => {}) : socket
      server.emit('connection', served)
      socket.resume()
    },
  }
}
