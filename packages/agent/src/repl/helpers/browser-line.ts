import WebSocket from 'ws'
import { toDevToolsServer } from '../../browser/devtools-server.ts'
import type { Deadline } from '../../script-process/deadline.ts'

export interface CdpEvent {
  readonly method: string
  readonly params: Record<string, unknown>
  readonly sessionId?: string
}

// biome-ignore lint/suspicious/noExplicitAny: each command has a response of its own.
export type CdpResult = any

interface CdpMessage extends Partial<CdpEvent> {
  readonly id?: number
  readonly result?: CdpResult
  readonly error?: { readonly message: string }
}

const keptEvents = 500
/** After a crash the next browser is available earlier. */
const restartSeconds = 15

/** The helpers' own connection to the browser; after a restart of Chromium the next command opens another. */
export class BrowserLine {
  readonly #address: () => Promise<string>
  readonly #deadline: Deadline
  #socket: Promise<WebSocket> | undefined
  readonly #pending = new Map<number, PromiseWithResolvers<CdpResult>>()
  readonly #listeners = new Set<(event: CdpEvent) => void>()
  #events: CdpEvent[] = []
  #lastId = 0
  /** Called when sessions of the connection are lost. */
  onLost: () => void = () => {}

  /** `address` resolves with the browser's websocket address when there is a browser. */
  constructor(address: () => Promise<string>, deadline: Deadline) {
    this.#address = address
    this.#deadline = deadline
  }

  /** Rejects if no response arrives before the end of the running call. */
  async send(method: string, params: object = {}, sessionId?: string): Promise<CdpResult> {
    const answer = await this.#deadline.race(this.#deadline.within(), this.#send(method, params, sessionId))
    if (answer === undefined) throw new Error(`${method} was not answered in time.`)
    return answer
  }

  async #send(method: string, params: object, sessionId: string | undefined): Promise<CdpResult> {
    if (method === 'Browser.close') throw new Error('Browser.close would end the browser for everybody in the session.')
    this.#socket ??= this.#open()
    const socket = await this.#socket
    const id = ++this.#lastId
    const answer = Promise.withResolvers<CdpResult>()
    this.#pending.set(id, answer)
    socket.send(JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) }))
    return answer.promise
  }

  /** Calls with every event until the returned function is called. */
  listen(listener: (event: CdpEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** The latest events that nobody has read. */
  drain(): CdpEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }

  async #open(): Promise<WebSocket> {
    const socket = await this.#deadline.poll(restartSeconds, () => this.#connect()).catch(() => undefined)
    if (socket) return socket
    this.#socket = undefined
    throw new Error('The browser cannot be reached.')
  }

  /** Undefined if the browser of that address has just died. */
  async #connect(): Promise<WebSocket | undefined> {
    const socket = new WebSocket(await this.#address(), {
      ...toDevToolsServer,
      maxPayload: 0,
      perMessageDeflate: false,
    })
    socket.on('error', () => {}) // 'close' follows.
    socket.on('message', (data) => this.#take(JSON.parse(String(data))))
    const isOpen = await new Promise((resolve) => {
      socket.once('open', () => resolve(true))
      socket.once('close', () => resolve(false))
    })
    if (!isOpen) return undefined
    socket.on('close', () => this.#lose())
    return socket
  }

  #take({ id, result, error, method, params = {}, sessionId }: CdpMessage): void {
    if (id !== undefined) {
      const pending = this.#pending.get(id)
      this.#pending.delete(id)
      if (error) pending?.reject(new Error(error.message))
      else pending?.resolve(result ?? {})
    } else if (method !== undefined) {
      const event = { method, params, ...(sessionId !== undefined && { sessionId }) }
      this.#events.push(event)
      if (this.#events.length > keptEvents) this.#events.shift()
      for (const listener of this.#listeners) listener(event)
    }
  }

  #lose(): void {
    this.#socket = undefined
    this.onLost()
    for (const { reject } of this.#pending.values()) reject(new Error('The browser has closed the connection.'))
    this.#pending.clear()
  }
}
