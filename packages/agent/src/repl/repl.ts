import { randomInt } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { ReplContent, ReplResult } from '@berth/contract/agent/operations/repl-operations.ts'
import { Queue } from '@berth/runtime/async/queue.ts'
import type { DevToolsEndpoint } from '../browser/chromium.ts'
import { devToolsAddress } from '../browser/devtools-server.ts'
import { answerQuestion } from '../script-process/agent-questions.ts'
import { ScriptProcess } from '../script-process/script-process.ts'
import { type FromRepl, limits, type ToRepl } from './repl-messages.ts'

const startLimitMilliseconds = 15_000

interface ReplOptions {
  readonly homeFolder: string
  readonly environment: () => Promise<Readonly<Record<string, string>>>
  /** The current address of the DevTools server. */
  readonly endpoint: () => Promise<DevToolsEndpoint>
  readonly ask: (method: string, params: unknown, signal: AbortSignal) => Promise<unknown>
}

export interface ReplCall {
  readonly code: string
  readonly reset: boolean
  readonly timeoutSeconds: number
}

type Outcome = Pick<ReplResult, 'success' | 'error' | 'stack' | 'repl_terminated'>

/** One run of the process, with output that no response has contained yet. */
interface RunningRepl {
  readonly id: string
  readonly process: ScriptProcess<ToRepl, FromRepl>
  /** Resolves when it is ready, or with how it ended if it ended before. */
  readonly ready: Promise<string | undefined>
  content: ReplContent[]
  contentBytes: number
  isTruncated: boolean
  end: (outcome: Outcome) => void
  stop: AbortController
}

/**
 * The Node.js process of the session, which keeps definitions between calls. It starts with the first call. A call that
 * runs too long or crashes it ends it; the next call starts another, with a new name.
 */
export class Repl {
  readonly #options: ReplOptions
  #repl: RunningRepl | undefined
  readonly #queue = new Queue()

  constructor(options: ReplOptions) {
    this.#options = options
  }

  /** One call at a time. A call whose caller disconnects continues: ending it would discard earlier definitions. */
  run(call: ReplCall, signal: AbortSignal): Promise<ReplResult> {
    return this.#queue.run(() => this.#runNow(call), signal)
  }

  async #runNow({ code, reset, timeoutSeconds }: ReplCall): Promise<ReplResult> {
    const started = performance.now()
    if (reset) this.#end()
    const repl = this.#repl ?? (await this.#start())
    const outcome = await this.#outcome(repl, code, timeoutSeconds * 1000)
    if (outcome.repl_terminated && this.#repl === repl) this.#end()
    const { content, isTruncated } = repl
    Object.assign(repl, { content: [], contentBytes: 0, isTruncated: false })
    return {
      ...outcome,
      repl_id: repl.id,
      ...(content.length > 0 && { content }),
      ...(isTruncated && { content_truncated: true }),
      duration_ms: Math.round(performance.now() - started),
    }
  }

  async #outcome(repl: RunningRepl, code: string, timeoutMilliseconds: number): Promise<Outcome> {
    const late = delay(startLimitMilliseconds, 'it did not start in time', { ref: false })
    const failure = await Promise.race([repl.ready, late])
    if (failure !== undefined) return terminated(`the process did not start: ${failure}`)
    if (code === '') return { success: true }
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    repl.end = resolve
    repl.stop = new AbortController()
    const timer = setTimeout(
      () => resolve(terminated(`execution timed out after ${timeoutMilliseconds}ms`)),
      timeoutMilliseconds,
    )
    repl.process.send({ type: 'run', code, timeoutMilliseconds })
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      repl.stop.abort()
    }
  }

  async #start(): Promise<RunningRepl> {
    const id = newReplId()
    const { homeFolder, environment, endpoint } = this.#options
    await endpoint()
    const ready = Promise.withResolvers<string | undefined>()
    const process = new ScriptProcess<ToRepl, FromRepl>({
      program: 'repl-process',
      args: [id, homeFolder],
      environment: { ...(await environment()), CDP_ENDPOINT: devToolsAddress },
      maxMessageBytes: limits.messageBytes,
      onMessage: (message) => (message.type === 'ready' ? ready.resolve(undefined) : this.#take(repl, message)),
    })
    const repl: RunningRepl = {
      id,
      process,
      ready: ready.promise,
      content: [],
      contentBytes: 0,
      isTruncated: false,
      end: () => {},
      stop: new AbortController(),
    }
    this.#repl = repl
    void process.ended.then((how) => {
      ready.resolve(how)
      repl.end(terminated(`the process has ended: ${how}`))
      // A running call reports the end as terminated; between calls nobody is told.
      if (this.#repl === repl) this.#repl = undefined
    })
    return repl
  }

  #take(repl: RunningRepl, message: Exclude<FromRepl, { type: 'ready' }>): void {
    switch (message.type) {
      case 'item':
        keep(repl, message.item)
        break
      case 'cut':
        repl.isTruncated = true
        break
      case 'done':
        repl.end(message.failure ? { success: false, ...message.failure } : { success: true })
        break
      case 'ask':
        void this.#answer(repl, message)
    }
  }

  async #answer(repl: RunningRepl, question: Extract<FromRepl, { type: 'ask' }>): Promise<void> {
    const { signal } = repl.stop
    repl.process.send(await answerQuestion(question, (method, params) => this.#options.ask(method, params, signal)))
  }

  #end(): void {
    this.#repl?.process.kill()
    this.#repl = undefined
  }
}

function terminated(error: string): Outcome {
  return { success: false, error, repl_terminated: true }
}

/** The process has narrower limits of its own; this one holds even if it ignores them. */
function keep(repl: RunningRepl, item: ReplContent): void {
  const size = item.type === 'image' ? item.data_b64.length : Buffer.byteLength(item.text) * 2
  if (repl.contentBytes + size > limits.answerBytes) repl.isTruncated = true
  else {
    repl.contentBytes += size + 100
    repl.content.push(item)
  }
}

const idLetters = 'abcdefghijklmnopqrstuvwxyz0123456789'

function newReplId(): string {
  return Array.from({ length: 24 }, (_, index) => idLetters[randomInt(index === 0 ? 26 : 36)]).join('')
}
