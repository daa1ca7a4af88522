import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { testHost } from '../pages.ts'

/** A proxy beside the test pages that forwards every tunnel to this host, and knows which connections are its own. */
export interface ForwardProxy extends AsyncDisposable {
  readonly host: string
  readonly port: number
  /** Whether the connection with this port at its other end comes from the proxy. */
  opened(localPort: number | undefined): boolean
}

export async function startForwardProxy(): Promise<ForwardProxy> {
  const sockets = new Set<Socket>()
  const opened = new Set<number>()
  const server = createServer((_request, response) => response.writeHead(405).end())
  server.on('connect', ({ url }, client: Socket) => {
    const site = connect({ port: Number(url?.split(':').at(-1)), host: testHost }, () => {
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
  server.listen(0, testHost)
  await once(server, 'listening')
  return {
    host: testHost,
    port: (server.address() as AddressInfo).port,
    opened: (localPort) => localPort !== undefined && opened.has(localPort),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
