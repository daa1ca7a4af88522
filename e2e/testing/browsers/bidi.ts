import { once } from 'node:events'
import type { Socket } from 'node:net'
import WebSocket from 'ws'

interface BidiMessage {
  readonly type: 'success' | 'error' | 'event'
  readonly id?: number | null
  readonly method?: string
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  readonly params?: any
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  readonly result?: any
  readonly error?: string
  readonly message?: string
}

/** A minimal BiDi client: a WebSocket and numbered commands. */
export class BidiClient {
  readonly socket: WebSocket
  /** The close code of the WebSocket. */
  readonly closed: Promise<number>
  readonly events: BidiMessage[] = []
  /** The length of the last message, to verify that it was not split. */
  lastLength = 0
  readonly #pending = new Map<number, PromiseWithResolvers<BidiMessage>>()
  #lastId = 0

  private constructor(socket: WebSocket) {
    this.socket = socket
    this.closed = once(socket, 'close').then(([code]) => code as number)
    socket.on('error', () => {}) // 'close' follows and is handled.
    socket.on('close', (code) => {
      for (const { reject } of this.#pending.values()) reject(new Error(`the websocket closed with ${code}`))
    })
    socket.on('message', (data) => this.#take(String(data)))
  }

  static async open(url: string): Promise<BidiClient> {
    const socket = new WebSocket(url, { maxPayload: 0, perMessageDeflate: false })
    await once(socket, 'open')
    return new BidiClient(socket)
  }

  /** Returns the whole response: a result or an error. */
  async ask(method: string, params: object = {}): Promise<BidiMessage> {
    if (this.socket.readyState !== WebSocket.OPEN) throw new Error(`the websocket is closed: ${method}`)
    const id = ++this.#lastId
    const pending = Promise.withResolvers<BidiMessage>()
    this.#pending.set(id, pending)
    this.socket.send(JSON.stringify({ id, method, params }))
    return pending.promise.finally(() => this.#pending.delete(id))
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  async send(method: string, params: object = {}): Promise<any> {
    const { result, error, message } = await this.ask(method, params)
    if (error) throw new Error(`${error}: ${message}`)
    return result
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  async evaluate(context: string, expression: string): Promise<any> {
    const { result } = await this.send('script.evaluate', { expression, target: { context }, awaitPromise: true })
    return result.value
  }

  /** Resets the connection, like a program that dies. */
  reset(): void {
    const { _socket: socket } = this.socket as unknown as { _socket: Socket }
    socket.resetAndDestroy()
  }

  #take(text: string): void {
    const message: BidiMessage = JSON.parse(text)
    this.lastLength = text.length
    const pending = typeof message.id === 'number' ? this.#pending.get(message.id) : undefined
    if (pending) pending.resolve(message)
    else this.events.push(message)
  }
}
