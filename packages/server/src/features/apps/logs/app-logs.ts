import type { DeploymentId, InvocationId } from '@berth/contract/common/ids.ts'
import { Changes } from '@berth/runtime/async/changes.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Insertable } from 'kysely'
import type { AppLogTable } from '../../../database/tables.ts'
import type { AppLogStore } from './app-log-store.ts'

const flushMilliseconds = 100
const maxWaitingLines = 500
/** The limit for one build or invocation. */
const maxCharacters = 1024 ** 2
const retentionDays = 8

interface AppLogsOptions {
  readonly store: AppLogStore
  readonly clock: Clock
  readonly logger: Logger
}

/** Collects what apps write, and wakes the callers that follow it. */
export class AppLogs {
  readonly #options: AppLogsOptions
  readonly #changes = new Map<DeploymentId, Changes>()
  #waiting: Insertable<AppLogTable>[] = []
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(options: AppLogsOptions) {
    this.#options = options
  }

  /** Stores the lines of one build or invocation, up to a total length. */
  writer(deploymentId: DeploymentId, invocationId: InvocationId | null): (line: string) => void {
    let characters = 0
    return (line) => {
      if (characters > maxCharacters) return
      characters += line.length + 1
      const isLast = characters > maxCharacters
      this.#add(deploymentId, invocationId, isLast ? 'Further output is not kept.' : line)
    }
  }

  #add(deploymentId: DeploymentId, invocationId: InvocationId | null, line: string): void {
    this.#waiting.push({
      deployment_id: deploymentId,
      invocation_id: invocationId,
      message: line.replaceAll('\0', '\uFFFD'),
      created_at: this.#options.clock.now(),
    })
    if (this.#waiting.length >= maxWaitingLines) void this.flush()
    else this.#timer ??= setTimeout(() => void this.flush(), flushMilliseconds)
  }

  /** Resolves when all lines so far are stored. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const lines = this.#waiting
    this.#waiting = []
    this.#writing = this.#writing.then(() => this.#write(lines))
    await this.#writing
  }

  async #write(lines: readonly Insertable<AppLogTable>[]): Promise<void> {
    try {
      await this.#options.store.insert(lines)
    } catch (error) {
      // A failing log must not end the invocation.
      this.#options.logger.warn({ err: error, lines: lines.length }, 'log lines of apps were lost')
    }
    for (const id of new Set(lines.map((line) => line.deployment_id))) this.notify(id)
  }

  /** Makes everyone who follows the deployment, or one of its invocations, poll again. */
  notify(id: DeploymentId): void {
    this.#changes.get(id)?.notify()
  }

  /** Resolves at the next change that this server is notified of, or when the signal aborts. */
  async next(id: DeploymentId, signal: AbortSignal): Promise<void> {
    const changes = this.#changes.get(id) ?? new Changes()
    this.#changes.set(id, changes)
    await changes.next(signal)
    if (changes.size === 0) this.#changes.delete(id)
  }

  async removeOld(): Promise<void> {
    const { store, clock } = this.#options
    await store.removeOld(new Date(clock.now().getTime() - retentionDays * 24 * 3_600_000))
  }
}
