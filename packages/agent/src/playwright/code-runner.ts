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
  /** Where the code would lie if it were a file. */
  readonly codeFile: string
}

/**
 * Runs one piece of code after the other. Each has a connection to the browser of its own: what it set up there goes
 * with it, and between calls nothing of ours answers dialogs or holds up new tabs that are for somebody else.
 */
export class CodeRunner {
  readonly #options: CodeRunnerOptions
  /** The end of the connection before. */
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
    this.#left = Promise.resolve(browser?.close()).catch(() => {}) // It is gone in any case.
    await this.#left
    for (const name of Object.getOwnPropertyNames(globalThis)) {
      if (!names.has(name)) Reflect.deleteProperty(globalThis, name)
    }
    this.#options.line.send({ type: 'settled', isClean: await this.#leftovers.areNone() })
  }

  /** Ends the call that runs with an error that nothing in it has caught; `told` comes when the agent knows. */
  fail(error: unknown, told: () => void): void {
    if (this.#isRunning) this.#finish(failureOf(error), told)
    else told()
  }

  /** Undefined when the browser could not be reached, and the agent was told. */
  async #open({ browser: address, tab, patienceMilliseconds }: RunMessage): Promise<BrowserOfCall | undefined> {
    const { line, gate, output } = this.#options
    const { chromium } = await this.#options.library
    await this.#left
    let opened: BrowserOfCall
    try {
      opened = await openBrowser({ chromium, gate, address, tab, patienceMilliseconds })
    } catch (error) {
      this.#isRunning = false
      line.send({ type: 'unreached', reason: (error as Error).message })
      return undefined
    }
    line.send({ type: 'tab', targetId: opened.targetId, created: opened.created })
    if (opened.isInsteadOfStuck) output.write('stderr', 'The tab does not answer; page is a new one.\n')
    return opened
  }

  #finish(outcome: RunOutcome, told?: () => void): void {
    if (!this.#isRunning) return
    this.#isRunning = false
    this.#options.output.close()
    this.#options.line.send({ type: 'done', outcome, isSpoiled: told !== undefined }, told)
  }
}

/** The value as it goes over the wire, made here: what it does when it is read must not happen to the agent. */
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

/** Without the calls that led to the code. */
function stackOfCode(stack: string): string {
  const lines = stack.split('\n')
  const ours = lines.findIndex((line) => line.startsWith('    at ') && line.includes(import.meta.filename))
  return (ours === -1 ? lines : lines.slice(0, ours)).join('\n')
}
