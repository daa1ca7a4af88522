import { type ChildProcess, fork } from 'node:child_process'
import { extname } from 'node:path'
import type { EgressProbeResult } from '@berth/contract/egress/egress-endpoints.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { NumberedRequest, WorkerMessage, WorkerRequest } from './worker-messages.ts'

// The program is beside this file, also in the bundle.
const program = new URL(`worker${extname(import.meta.url)}`, import.meta.url).pathname
const endLimitMilliseconds = 3_000

/** The worker ended before it answered. */
export class WorkerEnded extends Error {}

/** A worker process. */
export class WorkerProcess {
  readonly #child: ChildProcess
  readonly #logger: Logger
  readonly #ready = Promise.withResolvers<void>()
  readonly #ended = Promise.withResolvers<void>()
  readonly #pending = new Map<number, PromiseWithResolvers<EgressProbeResult | undefined>>()
  #lastNumber = 0

  constructor(logger: Logger) {
    this.#logger = logger
    this.#child = fork(program, [logger.level], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    this.#child.on('message', (message: WorkerMessage) => this.#handleMessage(message))
    this.#child.once('error', (error) => this.#handleEnd(error))
    this.#child.once('exit', (code, signal) =>
      this.#handleEnd(new WorkerEnded(`a worker has ended (${signal ?? code})`)),
    )
    this.#ready.promise.catch(() => {})
  }

  /** Resolves when it serves. Rejects when it ends first. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  get ended(): Promise<void> {
    return this.#ended.promise
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Rejects with WorkerEnded when the worker ends before it answers. */
  async request(request: WorkerRequest): Promise<EgressProbeResult | undefined> {
    await this.#ready.promise
    if (!this.#child.connected) throw new WorkerEnded('a worker has ended')
    const answer = Promise.withResolvers<EgressProbeResult | undefined>()
    this.#lastNumber += 1
    this.#pending.set(this.#lastNumber, answer)
    this.#child.send({ number: this.#lastNumber, request } satisfies NumberedRequest, () => {})
    return answer.promise
  }

  /** Closes its machines and ends. */
  async end(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect()
    const limit = setTimeout(() => this.#child.kill('SIGKILL'), endLimitMilliseconds)
    await this.#ended.promise
    clearTimeout(limit)
  }

  #handleMessage(message: WorkerMessage): void {
    switch (message.type) {
      case 'ready':
        this.#ready.resolve()
        return
      case 'log':
        this.#logger[message.level](message.facts, message.message)
        return
      case 'done':
        this.#pending.get(message.number)?.resolve(message.result)
        break
      case 'failed':
        this.#pending.get(message.number)?.reject(new Error(message.reason))
        break
    }
    this.#pending.delete(message.number)
  }

  #handleEnd(reason: Error): void {
    this.#ready.reject(reason)
    for (const { reject } of this.#pending.values()) reject(reason)
    this.#pending.clear()
    this.#ended.resolve()
  }
}
