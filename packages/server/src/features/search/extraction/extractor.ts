import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Semaphore } from '@berth/runtime/async/semaphore.ts'
import type { Extraction, FetchedDocument } from './extracted.ts'

export interface ExtractorLimits {
  /** The number of concurrent processes. */
  readonly processes: number
  readonly milliseconds: number
  readonly heapMebibytes: number
  /** The limit of all memory, including buffers outside of the heap. */
  readonly memoryMebibytes: number
  /** The time after which an idle process is ended. */
  readonly idleMilliseconds: number
}

export const defaultExtractorLimits: ExtractorLimits = {
  processes: 2,
  milliseconds: 10_000,
  heapMebibytes: 384,
  memoryMebibytes: 768,
  idleMilliseconds: 20_000,
}

const program = join(import.meta.dirname, 'extraction-process.ts')
const startMilliseconds = 20_000
const memoryLookMilliseconds = 100
const repository = join(import.meta.dirname, '../../../../../..')

interface ExtractionProcess {
  readonly child: ChildProcess
  readonly ready: Promise<unknown>
}

/**
 * Extracts documents in separate processes, so that a malicious one can neither block the server nor exhaust its
 * memory.
 */
export class Extractor {
  readonly #limits: ExtractorLimits
  readonly #idle: { readonly process: ExtractionProcess; readonly timer: NodeJS.Timeout }[] = []
  readonly #running = new Set<ExtractionProcess>()
  readonly #processes: Semaphore
  #isClosed = false

  constructor(limits: ExtractorLimits = defaultExtractorLimits) {
    this.#limits = limits
    this.#processes = new Semaphore(limits.processes)
  }

  /** A problem of the document never rejects. Rejects when the signal aborts. */
  async extract(document: FetchedDocument, signal: AbortSignal): Promise<Extraction> {
    await this.#processes.acquire(signal)
    const worker = this.#take()
    this.#running.add(worker)
    try {
      const extraction = await this.#run(worker, document, signal)
      if (worker.child.connected && !this.#isClosed && extraction.outcome !== 'failed') this.#keep(worker)
      else kill(worker)
      return extraction
    } catch (error) {
      kill(worker)
      throw error
    } finally {
      this.#running.delete(worker)
      this.#processes.release()
    }
  }

  /** Kills every process. Extractions in progress fail. */
  close(): void {
    this.#isClosed = true
    for (const { process, timer } of this.#idle.splice(0)) {
      clearTimeout(timer)
      kill(process)
    }
    for (const worker of this.#running) kill(worker)
  }

  async #run({ child, ready }: ExtractionProcess, document: FetchedDocument, signal: AbortSignal): Promise<Extraction> {
    const done = Promise.withResolvers<Extraction>()
    const fail = (reason: string) => done.resolve({ outcome: 'failed', reason })
    const gone = () => fail('the document took its process down')
    const left = () => done.reject(signal.reason)
    const take = (message: Extraction) => done.resolve(message)
    child.once('exit', gone)
    signal.addEventListener('abort', left)
    let timer: NodeJS.Timeout | undefined
    const watch = setInterval(
      () => void this.#look(child, () => fail('the document takes too much memory')),
      memoryLookMilliseconds,
    )
    try {
      if (signal.aborted) left()
      await Promise.race([ready, done.promise])
      timer = setTimeout(() => fail('reading the document takes too long'), this.#limits.milliseconds)
      child.once('message', take)
      if (child.connected) child.send(document, (error) => error && gone())
      else gone()
      return await done.promise
    } finally {
      clearTimeout(timer)
      clearInterval(watch)
      child.off('exit', gone)
      child.off('message', take)
      signal.removeEventListener('abort', left)
    }
  }

  /** V8's own limit does not include buffers. */
  async #look({ pid }: ChildProcess, tooMuch: () => void): Promise<void> {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '') // It has exited.
    const kibibytes = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0)
    if (kibibytes > this.#limits.memoryMebibytes * 1024) tooMuch()
  }

  #take(): ExtractionProcess {
    const idle = this.#idle.pop()
    if (!idle) return this.#start()
    clearTimeout(idle.timer)
    return idle.process
  }

  #start(): ExtractionProcess {
    const child = fork(program, [], {
      execArgv: [
        `--max-old-space-size=${this.#limits.heapMebibytes}`,
        '--permission',
        `--allow-fs-read=${repository}/*`,
        '--disable-warning=ExperimentalWarning',
        '--disable-warning=SecurityWarning',
      ],
      env: {},
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    child.on('error', () => {}) // It exits next, or was never started.
    // Does not keep the server running.
    child.unref()
    child.channel?.unref()
    const ready = once(child, 'message', { signal: AbortSignal.timeout(startMilliseconds) })
    ready.catch(() => {}) // Callers that wait for it see the rejection.
    return { child, ready }
  }

  #keep(process: ExtractionProcess): void {
    const timer = setTimeout(() => {
      this.#idle.splice(
        this.#idle.findIndex((idle) => idle.process === process),
        1,
      )
      kill(process)
    }, this.#limits.idleMilliseconds)
    this.#idle.push({ process, timer: timer.unref() })
  }
}

function kill({ child }: ExtractionProcess): void {
  child.kill('SIGKILL')
}
