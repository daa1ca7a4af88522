import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'

/** A proxy on loopback that forwards every tunnel to this host, and knows which connections are its own. */
export interface ForwardProxy extends AsyncDisposable {
  readonly port: number
  /** Whether the connection with this port at its other end comes from the proxy. */
  opened(localPort: number | undefined): boolean
}

export async function startForwardProxy(): Promise<ForwardProxy> {
  const sockets = new Set<Socket>()
  const opened = new Set<number>()
  const server = createServer((_request, response) => response.writeHead(405).end())
  server.on('connect', ({ url }, client: Socket) => {
    const site = connect({ port: Number(url?.split(':').at(-1)), host: '127.0.0.1' }, () => {
      opened.add(site.localPort ?? 0)
      client.write('HTTP/1.1 200 OK\r\n\r\n')
      client.pipe(site).pipe(client)
    })
    for (const socket of [client, site]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.once('close', () => {
        sockets.delete(socket)
        client.destroy()
        site.destroy()
      })
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    opened: (localPort) => localPort !== undefined && opened.has(localPort),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
