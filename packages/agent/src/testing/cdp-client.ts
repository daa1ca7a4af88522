import { once } from 'node:events'
import { WebSocket } from 'ws'

/** Without a limit, like the agent itself. */
const options = { maxPayload: 0, perMessageDeflate: false }

export interface CdpMessage {
  readonly id?: number
  readonly method?: string
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  readonly params?: any
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  readonly result?: any
  readonly error?: { readonly message: string }
  readonly sessionId?: string
}

/** A bare websocket that speaks CDP. */
export class CdpClient {
  readonly socket: WebSocket
  /** Close code of the websocket. */
  readonly closed: Promise<number>
  readonly #waiting = new Map<number, PromiseWithResolvers<CdpMessage>>()
  readonly #listeners = new Set<(message: CdpMessage) => void>()
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

  static async open(url: string): Promise<CdpClient> {
    const socket = new WebSocket(url, options)
    const client = new CdpClient(socket)
    await Promise.race([
      once(socket, 'open'),
      client.closed.then((code) => Promise.reject(new Error(`closed: ${code}`))),
    ])
    return client
  }

  /** The whole response: a result, or an error. */
  async ask(method: string, params: object = {}, sessionId?: string): Promise<CdpMessage> {
    if (this.socket.readyState !== WebSocket.OPEN) throw new Error(`the websocket is closed: ${method}`)
    const id = ++this.#lastId
    const answer = Promise.withResolvers<CdpMessage>()
    this.#waiting.set(id, answer)
    this.socket.send(JSON.stringify({ id, method, params, ...(sessionId !== undefined && { sessionId }) }))
    return answer.promise
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  async send(method: string, params: object = {}, sessionId?: string): Promise<any> {
    const { result, error } = await this.ask(method, params, sessionId)
    if (error) throw new Error(error.message)
    return result
  }

  /** CDP session of the first page. */
  async attach(): Promise<string> {
    const { targetInfos } = await this.send('Target.getTargets')
    const { targetId } = targetInfos.find(({ type }: { type: string }) => type === 'page')
    return this.attachTo(targetId)
  }

  async newPage(): Promise<string> {
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank' })
    return this.attachTo(targetId)
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  async evaluate(expression: string, sessionId: string): Promise<any> {
    const asked = { expression, returnByValue: true, awaitPromise: true, userGesture: true }
    const { result } = await this.send('Runtime.evaluate', asked, sessionId)
    return result.value
  }

  /** Calls with every event from now on. */
  onEvent(listener: (message: CdpMessage) => void): void {
    this.#listeners.add(listener)
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  nextEvent(method: string, fits: (params: any) => boolean = () => true): Promise<any> {
    return new Promise((resolve) => {
      this.onEvent((message) => {
        if (message.method === method && fits(message.params)) resolve(message.params)
      })
    })
  }

  terminate(): void {
    this.socket.terminate()
  }

  /** CDP session of a target. */
  async attachTo(targetId: string): Promise<string> {
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true })
    return sessionId
  }

  #take(message: CdpMessage): void {
    if (message.id === undefined) {
      for (const listener of this.#listeners) listener(message)
      return
    }
    this.#waiting.get(message.id)?.resolve(message)
    this.#waiting.delete(message.id)
  }
}
