import { inspect } from 'node:util'
import type { Worker } from 'node:worker_threads'
import type { chromium } from 'playwright-core'
import type { MessageLine } from '../script-process/message-line.ts'
import { type BrowserOfCall, openBrowser } from './browser-of-call.ts'
import type { CallOutput } from './call-output.ts'
import { compileCode } from './compile-code.ts'
import { type FromExecutor, maxResultBytes, type RunOutcome, type ToExecutor } from './executor-messages.ts'
import { Leftovers } from './leftovers.ts'

type RunMessage = Extract<ToExecutor, { type: 'run' }>

interface CodeRunnerOptions {
  readonly line: MessageLine<FromExecutor, ToExecutor>
  readonly output: CallOutput
  readonly gate: Worker
  readonly webmcp: object
  readonly library: Promise<{ readonly chromium: typeof chromium }>
  /** The path that the code would have if it were a file. */
  readonly codeFile: string
}

/**
 * Runs one piece of code at a time. Each has its own connection to the browser: its settings end with the connection,
 * and between calls nothing answers dialogs or delays new tabs of other clients.
 */
export class CodeRunner {
  readonly #options: CodeRunnerOptions
  /** Settles when the previous connection has ended. */
  #left: Promise<unknown> = Promise.resolve()
  #isRunning = false
  readonly #leftovers = new Leftovers()

  constructor(options: CodeRunnerOptions) {
    this.#options = options
  }

  async run(message: RunMessage): Promise<void> {
    const { output } = this.#options
    const names = new Set(Object.getOwnPropertyNames(globalThis))
    this.#isRunning = true
    output.open()
    this.#leftovers.expectNone()
    let browser: BrowserOfCall | undefined
    try {
      const code = compileCode(message.code, this.#options.codeFile)
      browser = await this.#open(message)
      if (!browser) return
      const require = process.getBuiltinModule('node:module').createRequire(this.#options.codeFile)
      this.#leftovers.beginCounting()
      const result = await code(browser.page, browser.context, browser.browser, this.#options.webmcp, require)
      this.#finish({ success: true, ...serialized(result) })
    } catch (thrown) {
      this.#finish(failureOf(thrown))
    }
    this.#left = Promise.resolve(browser?.close()).catch(() => {}) // The connection ends in any case.
    await this.#left
    for (const name of Object.getOwnPropertyNames(globalThis)) {
      if (!names.has(name)) Reflect.deleteProperty(globalThis, name)
    }
    this.#options.line.send({ type: 'settled', isClean: await this.#leftovers.areNone() })
  }

  /** Ends the running call with an uncaught error; `told` is called when the agent knows. */
  fail(error: unknown, told: () => void): void {
    if (this.#isRunning) this.#finish(failureOf(error), told)
    else told()
  }

  /** Undefined if the browser could not be reached; the agent has then been told. */
  async #open({ browser: address, tab, tabLimitMilliseconds }: RunMessage): Promise<BrowserOfCall | undefined> {
    const { line, gate, output } = this.#options
    const { chromium } = await this.#options.library
    await this.#left
    let opened: BrowserOfCall
    try {
      opened = await openBrowser({ chromium, gate, address, tab, tabLimitMilliseconds })
    } catch (error) {
      this.#isRunning = false
      line.send({ type: 'unreached', reason: (error as Error).message })
      return undefined
    }
    line.send({ type: 'tab', targetId: opened.targetId, created: opened.created })
    if (opened.replacesStuckTab) output.write('stderr', 'The tab does not answer; page is a new one.\n')
    return opened
  }

  #finish(outcome: RunOutcome, told?: () => void): void {
    if (!this.#isRunning) return
    this.#isRunning = false
    this.#options.output.close()
    this.#options.line.send({ type: 'done', outcome, isSpoiled: told !== undefined }, told)
  }
}

/**
 * Serializes the value for the wire. It happens here because reading it may run code of the caller, which must not run
 * in the agent.
 */
function serialized(value: unknown): { result?: unknown } {
  if (value === undefined) return {}
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (error) {
    throw new TypeError(`The result cannot be written as JSON: ${(error as Error).message}`, { cause: error })
  }
  if (text === undefined) throw new TypeError(`The result cannot be written as JSON: it is a ${typeof value}.`)
  if (Buffer.byteLength(text) > maxResultBytes)
    throw new RangeError(`The result is larger than ${maxResultBytes} bytes of JSON.`)
  return { result: JSON.parse(text) }
}

function failureOf(thrown: unknown): RunOutcome {
  if (!(thrown instanceof Error))
    return { success: false, error: typeof thrown === 'string' ? thrown : inspect(thrown) }
  const { message, name, stack } = thrown
  return {
    success: false,
    error: String(message || name),
    ...(stack !== undefined && { stack: stackOfCode(String(stack)) }),
  }
}

/** Without the frames that led to the code. */
function stackOfCode(stack: string): string {
  const lines = stack.split('\n')
  const ours = lines.findIndex((line) => line.startsWith('    at ') && line.includes(import.meta.filename))
  return (ours === -1 ? lines : lines.slice(0, ours)).join('\n')
}
