import { Worker } from 'node:worker_threads'
import type { ConnectOverCDPTransport } from 'playwright-core'
import { besideMain } from '../script-process/beside-main.ts'
import type { BrowserAddress } from './executor-messages.ts'
import type { FromGate, ToGate } from './gate-messages.ts'

interface CdpMessage {
  readonly id?: number
  readonly method?: string
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
  readonly sessionId?: string
}

/** Above Playwright's ids and below those of the gate. */
const firstOwnId = 500_000_000

/**
 * A connection to the browser for one call, through the gate. It is Playwright's transport, and opens the tab before
 * Playwright connects.
 */
export class GatedConnection implements ConnectOverCDPTransport {
  onmessage?: (message: object) => void
  onclose?: (reason?: string) => void
  /** Settles when the connection has ended, for any reason. */
  readonly closed: Promise<void>
  readonly #gate: Worker
  readonly #closed = Promise.withResolvers<void>()
  readonly #opened = Promise.withResolvers<void>()
  readonly #pending = new Map<number, PromiseWithResolvers<Record<string, unknown>>>()
  #lastOwnId = firstOwnId

  private constructor(gate: Worker) {
    this.#gate = gate
    this.closed = this.#closed.promise
    gate.on('message', this.#take)
  }

  static startGate(): Worker {
    const gate = new Worker(besideMain('playwright-gate'))
    gate.unref()
    return gate
  }

  /** `targetId` is the tab of the call. */
  static async open(
    gate: Worker,
    { port, browserPath }: BrowserAddress,
    tab: { readonly targetId: string | undefined; readonly tabLimitMilliseconds: number },
  ): Promise<GatedConnection> {
    const connection = new GatedConnection(gate)
    connection.#post({ open: `ws://127.0.0.1:${port}${browserPath}`, ...tab })
    await connection.#opened.promise
    return connection
  }

  /** Sends a command of our own beside those of Playwright. */
  command(method: string, params: object = {}): Promise<Record<string, unknown>> {
    const id = ++this.#lastOwnId
    const answer = Promise.withResolvers<Record<string, unknown>>()
    this.#pending.set(id, answer)
    this.#post(JSON.stringify({ id, method, params }))
    return answer.promise
  }

  send(message: CdpMessage): void {
    // The browser is shared: this ends the call's connection, as for any other client.
    if (message.method === 'Browser.close') {
      const { id, sessionId } = message
      queueMicrotask(() => this.onmessage?.({ id, result: {}, ...(sessionId && { sessionId }) }))
      this.close()
    } else this.#post(JSON.stringify(message))
  }

  close(): void {
    this.#post({})
  }

  #post(message: ToGate): void {
    this.#gate.postMessage(message)
  }

  readonly #take = (message: FromGate) => {
    if (typeof message !== 'string') return message.event === 'opened' ? this.#opened.resolve() : this.#end()
    const parsed = JSON.parse(message) as CdpMessage
    const pending = parsed.id === undefined ? undefined : this.#pending.get(parsed.id)
    if (!pending) return this.onmessage?.(parsed)
    this.#pending.delete(parsed.id as number)
    if (parsed.error) pending.reject(new Error(parsed.error.message))
    else pending.resolve(parsed.result ?? {})
  }

  #end(): void {
    this.#gate.off('message', this.#take)
    const gone = new Error('The browser has closed the connection.')
    this.#opened.promise.catch(() => {})
    this.#opened.reject(gone)
    for (const { reject } of this.#pending.values()) reject(gone)
    this.#closed.resolve()
    this.onclose?.()
  }
}
