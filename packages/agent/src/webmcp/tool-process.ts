import { Queue } from '@berth/runtime/async/queue.ts'
import { devToolsAddress } from '../browser/devtools-server.ts'
import { answerQuestion } from '../script-process/agent-questions.ts'
import { ScriptProcess } from '../script-process/script-process.ts'
import { type FromToolProcess, maxMessageBytes, type ToToolProcess } from './tool-process-messages.ts'

const idleLimitMilliseconds = 300_000

interface ToolProcessOptions {
  readonly homeFolder: string
  readonly environment: () => Promise<Readonly<Record<string, string>>>
  /** Waits until there is one. */
  readonly browser: () => Promise<unknown>
  readonly ask: (method: string, params: unknown, signal: AbortSignal) => Promise<unknown>
}

export type ToolTask = Exclude<ToToolProcess, { type: 'answer' }>

/** `lost`: the process ended before it reported the outcome of its task. */
export type ToolOutcome =
  | { readonly kind: 'done'; readonly result?: unknown }
  | { readonly kind: 'failed' | 'lost'; readonly error: string }

/** Runs custom tools outside of pages, one at a time, in a separate process. */
export class ToolProcess {
  readonly #options: ToolProcessOptions
  #process: Promise<ScriptProcess<ToToolProcess, FromToolProcess>> | undefined
  #end: (outcome: ToolOutcome) => void = () => {}
  /** Aborts at the end of the task. */
  #stopped = new AbortController()
  readonly #queue = new Queue()
  #idle: NodeJS.Timeout | undefined

  constructor(options: ToolProcessOptions) {
    this.#options = options
  }

  run(task: ToolTask, timeoutMilliseconds: number, signal: AbortSignal): Promise<ToolOutcome> {
    return this.#queue.run(() => this.#runNow(task, timeoutMilliseconds, signal))
  }

  async #runNow(task: ToolTask, timeoutMilliseconds: number, signal: AbortSignal): Promise<ToolOutcome> {
    if (signal.aborted) return { kind: 'failed', error: 'the caller has disconnected' }
    clearTimeout(this.#idle)
    const { promise, resolve } = Promise.withResolvers<ToolOutcome>()
    this.#end = resolve
    this.#stopped = new AbortController()
    const spoil = (error: string) => {
      this.#stop()
      resolve({ kind: 'lost', error })
    }
    const timer = setTimeout(() => spoil(`it did not end within ${timeoutMilliseconds / 1000} s`), timeoutMilliseconds)
    const leave = () => spoil('the caller has disconnected')
    signal.addEventListener('abort', leave)
    try {
      this.#process ??= this.#start()
      const process = await this.#process
      process.send(task)
      return await promise
    } finally {
      clearTimeout(timer)
      this.#stopped.abort()
      signal.removeEventListener('abort', leave)
      this.#idle = setTimeout(() => this.#stop(), idleLimitMilliseconds)
      this.#idle.unref()
    }
  }

  async #start(): Promise<ScriptProcess<ToToolProcess, FromToolProcess>> {
    const { homeFolder, environment, browser } = this.#options
    const variables = await environment()
    await browser()
    const process = new ScriptProcess<ToToolProcess, FromToolProcess>({
      program: 'custom-tool-process',
      args: [homeFolder],
      environment: { ...variables, CDP_ENDPOINT: devToolsAddress },
      maxMessageBytes,
      onMessage: (message) => void this.#take(process, message),
    })
    const started = this.#process
    void process.ended.then((how) => {
      if (this.#process !== started) return // It was stopped deliberately.
      this.#process = undefined
      this.#end({ kind: 'lost', error: `its process has ended: ${how}` })
    })
    return process
  }

  async #take(process: ScriptProcess<ToToolProcess, FromToolProcess>, message: FromToolProcess): Promise<void> {
    if (message.type === 'ask')
      process.send(
        await answerQuestion(message, (method, params) => this.#options.ask(method, params, this.#stopped.signal)),
      )
    else if (message.type === 'done') this.#end({ kind: 'done', result: message.result })
    else this.#end({ kind: 'failed', error: String(message.error) })
  }

  #stop(): void {
    clearTimeout(this.#idle)
    this.#process?.then((process) => process.kill()).catch(() => {}) // It did not start, so there is nothing to stop.
    this.#process = undefined
  }
}
