import { setTimeout as delay } from 'node:timers/promises'
import type { ExecutePlaywrightResult } from '@berth/contract/agent/operations/playwright-operations.ts'
import { Queue } from '@berth/runtime/async/queue.ts'
import type { DevToolsEndpoint } from '../browser/chromium.ts'
import { answerQuestion, type Question } from '../script-process/agent-questions.ts'
import { ScriptProcess } from '../script-process/script-process.ts'
import {
  type FromExecutor,
  maxMessageBytes,
  type RunOutcome,
  type TabChoice,
  type ToExecutor,
} from './executor-messages.ts'

/** An idle executor frees its memory; its tab stays, and the next call takes as long as a first one. */
const idleLimitMilliseconds = 300_000
const endOfBrowserMilliseconds = 2_000
/** Code whose tab hangs gets another tab, and most of its time. */
const maxTabLimitMilliseconds = 5_000
/** Time to close the connection of a call and check for what it has left running. */
const settleMilliseconds = 1_500

export interface ExecutorOptions {
  readonly endpoint: () => Promise<DevToolsEndpoint>
  readonly environment: () => Promise<Readonly<Record<string, string>>>
  /** `patchright` is harder for pages to detect, but supports less of the API. */
  readonly library: 'playwright' | 'patchright'
  readonly hasOwnTab: boolean
  readonly now: () => Date
  readonly ask: (method: string, params: unknown, signal: AbortSignal) => Promise<unknown>
}

export interface Run {
  readonly code: string
  readonly timeoutSeconds: number
  /** Aborts when the caller disconnects, which ends the code. */
  readonly signal: AbortSignal
}

interface RunningCall {
  readonly code: string
  readonly end: (outcome: RunOutcome) => void
  readonly stop: AbortController
  readonly output: { stdout: string; stderr: string }
  tab: { target_id: string; created: boolean } | undefined
  /** How long the tab may take to answer. */
  readonly tabLimitMilliseconds: number
  /** Settles when the browser of this code has ended. */
  browserEnded: Promise<unknown>
}

type Process = ScriptProcess<ToExecutor, FromExecutor>

/**
 * Runs the code of one caller at a time. If nothing started by the code is still running, the process stays for the
 * next call; otherwise it is killed with everything it has started, and replaced.
 */
export class Executor {
  readonly createdAt: Date
  lastUsedAt: Date
  targetId: string | undefined
  readonly #options: ExecutorOptions
  #process: Process | undefined
  #call: RunningCall | undefined
  readonly #queue = new Queue()
  #waiting = 0
  /** Replaced at each stop: earlier calls that wait are then not started. */
  #stopped = new AbortController()
  #idle: NodeJS.Timeout | undefined
  /** The report of the process about its state after a call. */
  #report = Promise.withResolvers<boolean>()
  /** Settles when the process is ready for the next call, or has been replaced. */
  #settled: Promise<void> = Promise.resolve()

  constructor(options: ExecutorOptions) {
    this.#options = options
    this.createdAt = options.now()
    this.lastUsedAt = this.createdAt
  }

  get isBusy(): boolean {
    return this.#waiting > 0
  }

  async run(run: Run): Promise<ExecutePlaywrightResult> {
    clearTimeout(this.#idle)
    this.#waiting += 1
    this.lastUsedAt = this.#options.now()
    const { signal: stopped } = this.#stopped
    try {
      return await this.#queue.run(() => this.#runNow(run), stopped)
    } catch (error) {
      if (error !== stopped.reason) throw error
      return { success: false, error: stopped.reason }
    } finally {
      this.#waiting -= 1
      this.lastUsedAt = this.#options.now()
      if (!this.isBusy) {
        this.#idle = setTimeout(() => this.#endProcess(), idleLimitMilliseconds)
        this.#idle.unref()
      }
    }
  }

  /** Ends the process; running and waiting calls fail with the reason. */
  stop(reason: string): void {
    clearTimeout(this.#idle)
    this.#stopped.abort(reason)
    this.#stopped = new AbortController()
    this.#call?.end({ success: false, error: reason })
    this.#endProcess()
  }

  async #runNow({ code, timeoutSeconds, signal }: Run): Promise<ExecutePlaywrightResult> {
    if (signal.aborted) return { success: false, error: 'the caller has disconnected' }
    const { signal: stopped } = this.#stopped
    await settledOrStopped(this.#settled, stopped)
    if (stopped.aborted) return { success: false, error: stopped.reason }
    const { promise, resolve } = Promise.withResolvers<RunOutcome>()
    const call: RunningCall = {
      code,
      end: resolve,
      stop: new AbortController(),
      output: { stdout: '', stderr: '' },
      tab: undefined,
      tabLimitMilliseconds: Math.min(maxTabLimitMilliseconds, timeoutSeconds * 250),
      browserEnded: Promise.resolve(),
    }
    const spoil = (error: string) => {
      this.#replaceProcess()
      resolve({ success: false, error })
    }
    const timeoutMilliseconds = timeoutSeconds * 1000
    const timer = setTimeout(() => spoil(`Execution timed out after ${timeoutMilliseconds}ms`), timeoutMilliseconds)
    const leave = () => spoil('the caller has disconnected')
    signal.addEventListener('abort', leave)
    this.#call = call
    try {
      this.#begin(call)
      return resultOf(await promise, call)
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', leave)
      call.stop.abort()
      this.#call = undefined
    }
  }

  #begin(call: RunningCall): void {
    const { environment, endpoint } = this.#options
    Promise.all([environment(), endpoint()]).then(
      ([variables, { port, browserPath, ended }]) => {
        if (this.#call !== call) return
        call.browserEnded = ended
        const { code, tabLimitMilliseconds } = call
        const browser = { port, browserPath }
        this.#running(variables).send({ type: 'run', code, browser, tab: this.#tab(), tabLimitMilliseconds })
      },
      (error: Error) => call.end({ success: false, error: error.message }),
    )
  }

  /** A browser that has just died refuses connections before its end is known; in that case, waits for the next one. */
  async #beginAgain(call: RunningCall, reason: string): Promise<void> {
    const late = delay(endOfBrowserMilliseconds, 'late', { ref: false })
    const first = await Promise.race([call.browserEnded.then(() => 'ended'), late])
    if (first === 'late') call.end({ success: false, error: `The browser cannot be reached: ${reason}` })
    else if (this.#call === call) this.#begin(call)
  }

  #tab(): TabChoice {
    if (!this.#options.hasOwnTab) return { kind: 'shown' }
    return { kind: 'own', ...(this.targetId !== undefined && { targetId: this.targetId }) }
  }

  #running(environment: Readonly<Record<string, string>>): Process {
    if (this.#process) return this.#process
    const process: Process = new ScriptProcess({
      program: 'playwright-process',
      args: [this.#options.library],
      environment,
      maxMessageBytes,
      onMessage: (message) => {
        if (this.#process === process) this.#take(process, message)
      },
    })
    this.#process = process
    void process.ended.then((how) => {
      if (this.#process !== process) return // It was stopped deliberately, and the call has the reason.
      this.#process = undefined
      this.#call?.end({ success: false, error: `The process of the code has ended: ${how}` })
    })
    return process
  }

  #endProcess(): void {
    this.#process?.kill()
    this.#process = undefined
  }

  /** Starts a new process now, so that the next call does not wait for it. */
  #replaceProcess(): void {
    this.#endProcess()
    const stopped = this.#stopped
    this.#options.environment().then(
      (variables) => {
        if (this.#stopped === stopped) this.#running(variables)
      },
      () => {}, // The next call reports the error.
    )
  }

  /** Code ends with its call: kills what it has started, and the process too if something in it is still running. */
  async #settle(process: Process, report: Promise<boolean>): Promise<void> {
    const late = delay(settleMilliseconds, false, { ref: false })
    const [isClean, hadChildren] = await Promise.all([Promise.race([report, late]), process.killDescendants()])
    if (this.#process === process && (!isClean || hadChildren)) this.#replaceProcess()
  }

  #take(process: Process, message: FromExecutor): void {
    if (message.type === 'settled') this.#report.resolve(message.isClean === true)
    else if (this.#call) this.#takeFromCall(process, this.#call, message)
  }

  #takeFromCall(process: Process, call: RunningCall, message: Exclude<FromExecutor, { type: 'settled' }>): void {
    switch (message.type) {
      case 'output':
        call.output[message.channel === 'stderr' ? 'stderr' : 'stdout'] += String(message.text)
        break
      case 'tab':
        this.targetId = String(message.targetId)
        call.tab = { target_id: this.targetId, created: message.created === true }
        break
      case 'unreached':
        void this.#beginAgain(call, String(message.reason))
        break
      case 'done':
        this.#report = Promise.withResolvers()
        if (message.isSpoiled === true) this.#replaceProcess()
        else this.#settled = this.#settle(process, this.#report.promise)
        call.end(message.outcome)
        break
      case 'ask':
        void this.#answer(process, message, call.stop.signal)
    }
  }

  async #answer(process: Process, question: Question, signal: AbortSignal): Promise<void> {
    process.send(await answerQuestion(question, (method, params) => this.#options.ask(method, params, signal)))
  }
}

async function settledOrStopped(settled: Promise<void>, stopped: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = () => resolve()
  stopped.addEventListener('abort', stop)
  await Promise.race([settled, promise])
  stopped.removeEventListener('abort', stop)
}

function resultOf(outcome: RunOutcome, { output, tab }: RunningCall): ExecutePlaywrightResult {
  const { stdout, stderr } = output
  const shared = { ...(stdout && { stdout }), ...(tab && { tab }) }
  if (outcome?.success === true) {
    return {
      success: true,
      ...('result' in outcome && { result: outcome.result }),
      ...(stderr && { stderr }),
      ...shared,
    }
  }
  const { error, stack } = outcome
  return {
    success: false,
    error: String(error),
    ...((stderr || stack) && { stderr: `${stderr}${stack ?? ''}` }),
    ...shared,
  }
}
