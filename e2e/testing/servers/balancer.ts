import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/**
 * A simple TCP load balancer in front of several servers: passes each connection to the next server, without parsing.
 */
export class Balancer implements AsyncDisposable {
  readonly #listener: Server
  readonly #open = new Set<Socket>()
  #ports: readonly number[]
  #next = 0

  private constructor(ports: readonly number[]) {
    this.#ports = ports
    this.#listener = createServer({ allowHalfOpen: true }, (client) => this.#serve(client))
  }

  static async open(ports: readonly number[] = []): Promise<Balancer> {
    const balancer = new Balancer(ports)
    balancer.#listener.listen(0, '127.0.0.1')
    await once(balancer.#listener, 'listening')
    return balancer
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#listener.address() as AddressInfo).port}`
  }

  /** The servers for new connections. */
  use(ports: readonly number[]): void {
    this.#ports = ports
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close()
    for (const socket of this.#open) socket.destroy()
    await once(this.#listener, 'close')
  }

  #serve(client: Socket): void {
    const port = this.#ports[this.#next++ % this.#ports.length]
    if (port === undefined) return void client.destroy()
    const server = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#open.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => socket.destroy())
      socket.once('close', () => {
        this.#open.delete(socket)
        other.destroySoon()
      })
      socket.pipe(other)
    }
  }
}
