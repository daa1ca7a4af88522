import { once } from 'node:events'
import { WebSocket } from 'ws'

/** Without a size limit, like the agent itself. */
const options = { maxPayload: 0, perMessageDeflate: false }

/** A bare websocket with numbered commands. Messages other than their responses are events. */
export class CommandClient<Message extends { readonly id?: number | null }> {
  readonly socket: WebSocket
  /** Close code of the websocket. */
  readonly closed: Promise<number>
  readonly #waiting = new Map<number, PromiseWithResolvers<Message>>()
  readonly #listeners = new Set<(event: Message) => void>()
  #lastId = 0

  constructor(url: string) {
    this.socket = new WebSocket(url, options)
    this.socket.on('error', () => {}) // Reported by the 'close' that follows.
    this.socket.on('message', (data) => this.#take(JSON.parse(String(data))))
    this.closed = once(this.socket, 'close').then(([code]) => code as number)
    void this.closed.then((code) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`the websocket closed with ${code}`))
    })
  }

  async opened(): Promise<this> {
    const refused = this.closed.then((code) => Promise.reject(new Error(`closed: ${code}`)))
    await Promise.race([once(this.socket, 'open'), refused])
    return this
  }

  /** Calls with every event from now on. */
  onEvent(listener: (event: Message) => void): void {
    this.#listeners.add(listener)
  }

  terminate(): void {
    this.socket.terminate()
  }

  /** Sends the command with a number, and resolves with the whole response: a result, or an error. */
  protected async command(command: {
    readonly method: string
    readonly params: object
    readonly sessionId?: string
  }): Promise<Message> {
    if (this.socket.readyState !== WebSocket.OPEN) throw new Error(`the websocket is closed: ${command.method}`)
    const id = ++this.#lastId
    const answer = Promise.withResolvers<Message>()
    this.#waiting.set(id, answer)
    this.socket.send(JSON.stringify({ id, ...command }))
    return answer.promise
  }

  #take(message: Message): void {
    const waiting = typeof message.id === 'number' ? this.#waiting.get(message.id) : undefined
    if (!waiting) {
      for (const listener of this.#listeners) listener(message)
      return
    }
    this.#waiting.delete(message.id as number)
    waiting.resolve(message)
  }
}
