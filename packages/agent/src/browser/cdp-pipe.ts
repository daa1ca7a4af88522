import type { Readable, Writable } from 'node:stream'

interface PipeMessage {
  readonly id?: number
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
  readonly sessionId?: string
}

type EventHandler = (params: Record<string, unknown>, sessionId: string | undefined) => void

const separator = 0
const closedReason = 'Chromium has closed its pipe'

/** The agent's own line to Chromium (`--remote-debugging-pipe`): JSON texts, each with a NUL byte behind it. */
export class CdpPipe {
  readonly #input: Writable
  readonly #pending = new Map<number, PromiseWithResolvers<Record<string, unknown>>>()
  readonly #handlers = new Map<string, Set<EventHandler>>()
  #lastId = 0
  #isClosed = false
  #unfinished: Buffer[] = []

  constructor(input: Writable, output: Readable) {
    this.#input = input
    input.on('error', () => {}) // Chromium has gone; its exit says so.
    output.on('error', () => {})
    output.on('data', (chunk: Buffer) => this.#read(chunk))
    output.on('close', () => this.#close())
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Rejects with Chromium's own words when it refuses, and when the pipe closes first. */
  send(method: string, params: Record<string, unknown> = {}, sessionId?: string): Promise<Record<string, unknown>> {
    if (this.#isClosed) return Promise.reject(new Error(closedReason))
    const id = ++this.#lastId
    const answer = Promise.withResolvers<Record<string, unknown>>()
    this.#pending.set(id, answer)
    this.#input.write(`${JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) })}\0`)
    return answer.promise
  }

  /** Calls with every such event, until the returned function is called. */
  on(method: string, handler: EventHandler): () => void {
    const handlers = this.#handlers.get(method) ?? new Set()
    this.#handlers.set(method, handlers.add(handler))
    return () => void handlers.delete(handler)
  }

  #read(chunk: Buffer): void {
    let start = 0
    for (let end = chunk.indexOf(separator); end !== -1; end = chunk.indexOf(separator, start)) {
      const text = Buffer.concat([...this.#unfinished, chunk.subarray(start, end)]).toString('utf8')
      this.#unfinished = []
      start = end + 1
      this.#take(JSON.parse(text))
    }
    if (start < chunk.length) this.#unfinished.push(chunk.subarray(start))
  }

  #take({ id, method, params = {}, result, error, sessionId }: PipeMessage): void {
    if (id === undefined) {
      for (const handler of this.#handlers.get(method ?? '') ?? []) handler(params, sessionId)
      return
    }
    const answer = this.#pending.get(id)
    this.#pending.delete(id)
    if (error) answer?.reject(new Error(error.message))
    else answer?.resolve(result ?? {})
  }

  #close(): void {
    this.#isClosed = true
    for (const { reject } of this.#pending.values()) reject(new Error(closedReason))
    this.#pending.clear()
  }
}
