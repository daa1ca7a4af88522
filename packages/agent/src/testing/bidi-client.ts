import { once } from 'node:events'
import { WebSocket } from 'ws'

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

/** A bare websocket that speaks WebDriver BiDi. */
export class BidiClient {
  readonly socket: WebSocket
  /** Close code of the websocket. */
  readonly closed: Promise<number>
  readonly events: BidiMessage[] = []
  readonly #waiting = new Map<number, PromiseWithResolvers<BidiMessage>>()
  #lastId = 0

  private constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('error', () => {}) // Reported by the 'close' that follows.
    this.closed = once(socket, 'close').then(([code]) => code as number)
    void this.closed.then((code) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`the websocket closed with ${code}`))
    })
    socket.on('message', (data) => this.#take(JSON.parse(String(data))))
  }

  static async open(url: string): Promise<BidiClient> {
    const socket = new WebSocket(url, { maxPayload: 0, perMessageDeflate: false })
    const client = new BidiClient(socket)
    await Promise.race([
      once(socket, 'open'),
      client.closed.then((code) => Promise.reject(new Error(`closed: ${code}`))),
    ])
    return client
  }

  /** The whole response: a result, or an error. */
  async ask(method: string, params: object = {}): Promise<BidiMessage> {
    if (this.socket.readyState !== WebSocket.OPEN) throw new Error(`the websocket is closed: ${method}`)
    const id = ++this.#lastId
    const answer = Promise.withResolvers<BidiMessage>()
    this.#waiting.set(id, answer)
    this.socket.send(JSON.stringify({ id, method, params }))
    return answer.promise
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  async send(method: string, params: object = {}): Promise<any> {
    const { result, error, message } = await this.ask(method, params)
    if (error) throw new Error(`${error}: ${message}`)
    return result
  }

  /** The first page of the browser. */
  async firstContext(): Promise<string> {
    const { contexts } = await this.send('browsingContext.getTree')
    return contexts[0].context
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  async evaluate(context: string, expression: string): Promise<any> {
    const { result } = await this.send('script.evaluate', { expression, target: { context }, awaitPromise: true })
    return result.value
  }

  terminate(): void {
    this.socket.terminate()
  }

  #take(message: BidiMessage): void {
    const waiting = typeof message.id === 'number' ? this.#waiting.get(message.id) : undefined
    if (!waiting) {
      this.events.push(message)
      return
    }
    this.#waiting.delete(message.id as number)
    waiting.resolve(message)
  }
}
