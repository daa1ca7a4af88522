import { once } from 'node:events'
import { WebSocket } from 'ws'

/** A small RFB client over a WebSocket, which sends arbitrary data. */
export class RfbClient {
  readonly socket: WebSocket
  readonly #received: Buffer[] = []

  private constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('error', () => {}) // Reported by the 'close' that follows.
    socket.on('message', (data) => this.#received.push(data as Buffer))
  }

  static async open(url: string): Promise<RfbClient> {
    const socket = new WebSocket(url)
    const client = new RfbClient(socket)
    await once(socket, 'open')
    return client
  }

  /** Completes the handshake. */
  static async connect(url: string): Promise<RfbClient> {
    const client = await RfbClient.open(url)
    await client.receive(12)
    client.send(Buffer.from('RFB 003.008\n'))
    await client.receive(14)
    client.send(Buffer.from([1]))
    await client.receive(18)
    client.send(Buffer.from([1]))
    await client.receive(18 + 24)
    return client
  }

  send(bytes: Uint8Array): void {
    this.socket.send(bytes)
  }

  /** Waits until this many bytes have arrived in total. */
  async receive(total: number): Promise<void> {
    while (this.received < total) await once(this.socket, 'message')
  }

  get received(): number {
    return this.#received.reduce((sum, { length }) => sum + length, 0)
  }

  strike(keysym: number): void {
    this.press(keysym, true)
    this.press(keysym, false)
  }

  press(keysym: number, isDown: boolean): void {
    const message = Buffer.from([4, isDown ? 1 : 0, 0, 0, 0, 0, 0, 0])
    message.writeUInt32BE(keysym, 4)
    this.send(message)
  }

  close(): void {
    this.socket.terminate()
  }
}
