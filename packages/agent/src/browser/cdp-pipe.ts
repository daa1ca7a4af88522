import type { Readable, Writable } from 'node:stream'

import type { CdpSecret } from './cdp-secret.ts'
import type { CdpAnswer, CdpEvent, CdpEventParams, CdpMethod, CdpParams } from './cdp-types.ts'

interface PipeMessage {
  readonly id?: number
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
  readonly sessionId?: string
}

type EventHandler = (params: Record<string, unknown>, sessionId: string | undefined) => void

interface PendingAnswer {
  readonly sessionId: string | undefined
  readonly answer: PromiseWithResolvers<unknown>
  readonly timer: NodeJS.Timeout | undefined
}

interface Destination {
  /** Session of a target; without it the command goes to the browser. */
  readonly sessionId?: string | undefined
  /** `Infinity` for callers with a limit of their own. */
  readonly limitMilliseconds?: number
  /** The secret in the parameters. */
  readonly secret?: CdpSecret | undefined
}

/** Any page may hang at any moment, and so may the browser. */
const answerLimitMilliseconds = 30_000

const separator = 0
/** The beginning of an event in Chromium's messages. */
const eventStart = Buffer.from('{"method":"')
const maxMethodLength = 100
const quote = '"'.charCodeAt(0)
const detached = 'Target.detachedFromTarget'
const closedReason = 'Chromium has closed its pipe'

/** The agent's own connection to Chromium (`--remote-debugging-pipe`): JSON messages, each followed by a NUL byte. */
export class CdpPipe {
  readonly #input: Writable
  readonly #pending = new Map<number, PendingAnswer>()
  readonly #handlers = new Map<string, Set<EventHandler>>()
  #lastId = 0
  #isClosed = false
  #unfinished: Buffer[] = []

  constructor(input: Writable, output: Readable) {
    this.#input = input
    input.on('error', () => {}) // Chromium has ended; its exit is reported elsewhere.
    output.on('error', () => {})
    output.on('data', (chunk: Buffer) => this.#read(chunk))
    output.on('close', () => this.#close())
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /**
   * Rejects with Chromium's error message, or when the pipe closes, the target detaches, or no response arrives in
   * time.
   */
  send<Method extends CdpMethod>(
    method: Method,
    params?: CdpParams<Method>,
    destination: string | Destination = {},
  ): Promise<CdpAnswer<Method>> {
    if (this.#isClosed) return Promise.reject(new Error(closedReason))
    const {
      sessionId,
      limitMilliseconds = answerLimitMilliseconds,
      secret,
    }: Destination = typeof destination === 'string' ? { sessionId: destination } : destination
    const id = ++this.#lastId
    const answer = Promise.withResolvers<CdpAnswer<Method>>()
    const giveUp = () => this.#reject(id, new Error(`${method} was not answered in time`))
    const timer = Number.isFinite(limitMilliseconds) ? setTimeout(giveUp, limitMilliseconds).unref() : undefined
    this.#pending.set(id, { sessionId, answer: answer as PromiseWithResolvers<unknown>, timer })
    this.#write(`${JSON.stringify({ id, method, params: params ?? {}, ...(sessionId && { sessionId }) })}\0`, secret)
    return answer.promise
  }

  #write(command: string, secret: CdpSecret | undefined): void {
    if (!secret) {
      this.#input.write(command)
      return
    }
    const bytes = secret.putInto(command)
    secret.overwrite()
    this.#input.write(bytes, () => bytes.fill(0))
  }

  /** Calls the handler for each such event until the returned function is called. */
  on<Event extends CdpEvent>(
    event: Event,
    handler: (params: CdpEventParams<Event>, sessionId: string | undefined) => void,
  ): () => void {
    const handlers = this.#handlers.get(event) ?? new Set()
    this.#handlers.set(event, handlers.add(handler as EventHandler))
    return () => void handlers.delete(handler as EventHandler)
  }

  #read(chunk: Buffer): void {
    let start = 0
    for (let end = chunk.indexOf(separator); end !== -1; end = chunk.indexOf(separator, start)) {
      const rest = chunk.subarray(start, end)
      const message = this.#unfinished.length > 0 ? Buffer.concat([...this.#unfinished, rest]) : rest
      this.#unfinished = []
      start = end + 1
      if (this.#concernsSomebody(message)) this.#take(JSON.parse(message.toString('utf8')))
    }
    if (start < chunk.length) this.#unfinished.push(chunk.subarray(start))
  }

  /** Most events of a domain have no listener here, and parsing them would take processor time from the pages. */
  #concernsSomebody(message: Buffer): boolean {
    if (!message.subarray(0, eventStart.length).equals(eventStart)) return true
    const end = message.indexOf(quote, eventStart.length)
    if (end === -1 || end > maxMethodLength) return true
    const method = message.toString('latin1', eventStart.length, end)
    return method === detached || (this.#handlers.get(method)?.size ?? 0) > 0
  }

  #take({ id, method, params = {}, result, error, sessionId }: PipeMessage): void {
    if (id === undefined) {
      for (const handler of this.#handlers.get(method ?? '') ?? []) handler(params, sessionId)
      if (method === detached) this.#rejectOf(params.sessionId)
      return
    }
    if (error) this.#reject(id, new Error(error.message))
    else this.#forget(id)?.resolve(result ?? {})
  }

  #reject(id: number, error: Error): void {
    this.#forget(id)?.reject(error)
  }

  #forget(id: number): PromiseWithResolvers<unknown> | undefined {
    const pending = this.#pending.get(id)
    clearTimeout(pending?.timer)
    this.#pending.delete(id)
    return pending?.answer
  }

  /** Chromium does not answer the pending commands of a detached target. */
  #rejectOf(session: unknown): void {
    for (const [id, { sessionId }] of this.#pending) {
      if (sessionId === session) this.#reject(id, new Error('the page has closed'))
    }
  }

  #close(): void {
    this.#isClosed = true
    for (const id of this.#pending.keys()) this.#reject(id, new Error(closedReason))
  }
}
