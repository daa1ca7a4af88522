import { once } from 'node:events'
import WebSocket from 'ws'
import { until } from '../fault/testing/until.ts'

interface CdpMessage {
  readonly id?: number
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
  readonly sessionId?: string
}

/** A minimal CDP client: a WebSocket and numbered commands. */
export class CdpClient {
  readonly socket: WebSocket
  /** Every message that was not a response to our command. */
  readonly events: CdpMessage[] = []
  #lastId = 0
  readonly #pending = new Map<number, PromiseWithResolvers<Record<string, unknown>>>()

  private constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('message', (data) => this.#take(JSON.parse(String(data))))
    socket.on('close', (code) => {
      for (const { reject } of this.#pending.values()) reject(new Error(`the websocket closed with ${code}`))
    })
    socket.on('error', () => {}) // 'close' follows and is handled.
  }

  static async open(url: string, options: WebSocket.ClientOptions = {}): Promise<CdpClient> {
    const socket = new WebSocket(url, { maxPayload: 0, perMessageDeflate: false, ...options })
    await once(socket, 'open')
    return new CdpClient(socket)
  }

  async send(
    method: string,
    params: Record<string, unknown> = {},
    sessionId?: string,
  ): Promise<Record<string, unknown>> {
    if (this.socket.readyState !== WebSocket.OPEN) throw new Error(`the websocket is closed: ${method}`)
    const id = ++this.#lastId
    const pending = Promise.withResolvers<Record<string, unknown>>()
    this.#pending.set(id, pending)
    this.socket.send(JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) }))
    return pending.promise.finally(() => this.#pending.delete(id))
  }

  /** Attaches to the first page with a matching URL, as soon as it exists. Resolves with the CDP session. */
  async attachToPage(fits: (url: string) => boolean): Promise<string> {
    const find = async () => {
      const { targetInfos } = (await this.send('Target.getTargets')) as { targetInfos: TargetInfo[] }
      return targetInfos.find(({ type, url }) => type === 'page' && fits(url))?.targetId
    }
    const targetId = await until('the page', find, { limitSeconds: 20 })
    const attached = await this.send('Target.attachToTarget', { targetId, flatten: true })
    const sessionId = attached.sessionId as string
    // A target has the new URL before its page does.
    const hasCome = async () => fits(String(await this.evaluate(sessionId, 'location.href').catch(() => '')))
    await until('the page', hasCome, { limitSeconds: 20 })
    return sessionId
  }

  /** Opens a page and attaches to it. Returns the id of the CDP session. */
  async openPage(url = 'about:blank'): Promise<string> {
    const { targetId } = await this.send('Target.createTarget', { url })
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true })
    return sessionId as string
  }

  /** Resolves when the page has gone. Chromium answers before that. */
  async closePage(targetId: string): Promise<void> {
    await this.send('Target.closeTarget', { targetId })
    const isGone = async () => {
      const { targetInfos } = (await this.send('Target.getTargets')) as { targetInfos: TargetInfo[] }
      return !targetInfos.some((target) => target.targetId === targetId)
    }
    await until('the end of the page', isGone, { limitSeconds: 60 })
  }

  async evaluate(sessionId: string, expression: string): Promise<unknown> {
    const { result, exceptionDetails } = await this.send(
      'Runtime.evaluate',
      { expression, returnByValue: true, awaitPromise: true },
      sessionId,
    )
    if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails))
    return (result as { value: unknown }).value
  }

  /** Resets the connection, like a program that dies. */
  reset(): void {
    const { _socket: socket } = this.socket as unknown as { _socket: import('node:net').Socket }
    socket.resetAndDestroy()
  }

  async close(): Promise<void> {
    if (this.socket.readyState === WebSocket.CLOSED) return
    this.socket.close()
    await once(this.socket, 'close')
  }

  #take(message: CdpMessage): void {
    const pending = message.id === undefined ? undefined : this.#pending.get(message.id)
    if (!pending) {
      this.events.push(message)
      return
    }
    if (message.error) pending.reject(new Error(message.error.message))
    else pending.resolve(message.result ?? {})
  }
}

interface TargetInfo {
  readonly type: string
  readonly targetId: string
  readonly url: string
}
