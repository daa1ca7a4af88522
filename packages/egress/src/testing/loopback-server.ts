import { once } from 'node:events'
import { createServer as createHttpServer, type Server as HttpServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'

/** A server on loopback for the duration of a test. */
export interface LoopbackServer extends AsyncDisposable {
  readonly port: number
  /** `127.0.0.1:port`, or the port with the requested address. */
  readonly authority: string
  /** The number of connections so far. */
  connections(): number
  /** Resolves with the next connection. */
  nextConnection(): Promise<Socket>
  /** Resolves when no connection is open. */
  untilAbandoned(): Promise<void>
}

interface Options {
  readonly address?: string
  readonly port?: number
}

export function startHttpServer(
  listener: RequestListener,
  options: Options = {},
): Promise<LoopbackServer & { readonly server: HttpServer }> {
  const server = createHttpServer({ keepAliveTimeout: 60_000 }, listener)
  return started(server, options)
}

export function startTcpServer(onConnection: (socket: Socket) => void, options: Options = {}): Promise<LoopbackServer> {
  return started(createServer({ allowHalfOpen: true }, onConnection), options)
}

async function started<Kind extends Server>(server: Kind, { address = '127.0.0.1', port = 0 }: Options) {
  const sockets = new Set<Socket>()
  let count = 0
  server.on('connection', (socket: Socket) => {
    count += 1
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => {
      sockets.delete(socket)
      if (sockets.size === 0) server.emit('abandoned')
    })
  })
  server.listen(port, address)
  await once(server, 'listening')
  const bound = (server.address() as AddressInfo).port

  return {
    server,
    port: bound,
    authority: `${address}:${bound}`,
    connections: () => count,
    nextConnection: async () => (await once(server, 'connection'))[0] as Socket,
    untilAbandoned: async () => {
      if (sockets.size > 0) await once(server, 'abandoned')
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Returns a port of loopback on which nothing listens. */
export async function unusedPort(): Promise<number> {
  await using server = await startTcpServer(() => {})
  return server.port
}
