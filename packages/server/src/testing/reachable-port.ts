import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type NetConnectOpts, type Socket } from 'node:net'
import { pipeline } from 'node:stream'

export interface ReachablePort extends AsyncDisposable {
  readonly port: number
}

/** Makes a socket of this host reachable for pods at another address of the host. */
export async function openReachablePort(host: string, target: NetConnectOpts): Promise<ReachablePort> {
  const open = new Set<Socket>()
  const server = createServer((incoming) => {
    const outgoing = connect(target)
    for (const socket of [incoming, outgoing]) {
      open.add(socket)
      socket.once('close', () => open.delete(socket))
    }
    // The end of either side ends the other.
    pipeline(incoming, outgoing, incoming, () => {})
  })
  server.listen({ host, port: 0 })
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.close()
      for (const socket of open) socket.destroy()
      await once(server, 'close')
    },
  }
}
