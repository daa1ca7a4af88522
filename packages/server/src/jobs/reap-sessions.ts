import type { SessionId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { readAgentState } from '../agent-link/agent-client.ts'
import type { SessionEnder } from '../features/sessions/end-session.ts'
import type { SessionMachines } from '../features/sessions/session-machines.ts'
import type { OverdueSession, SessionStore, UnfinishedSession } from '../features/sessions/session-store.ts'
import type { SessionUpdater } from '../features/sessions/update-session.ts'

interface ReaperOptions {
  readonly driverId: string
  readonly store: SessionStore
  readonly machines: SessionMachines
  readonly ender: SessionEnder
  readonly updater: SessionUpdater
  readonly clock: Clock
  readonly logger: Logger
}

/** Ends sessions that were idle for their whole time, and brings to an end what was interrupted. */
export class SessionReaper {
  readonly #options: ReaperOptions
  readonly #timer: NodeJS.Timeout
  #running: Promise<void> = Promise.resolve()
  #isRunning = false

  constructor(options: ReaperOptions, intervalMilliseconds: number) {
    this.#options = options
    this.#timer = setInterval(() => this.#tick(), intervalMilliseconds)
  }

  /** Starts no further round and waits for the one under way. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#running
  }

  #tick(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    this.#running = this.reap()
      .catch((error: Error) => this.#options.logger.warn({ reason: error.message }, 'could not look for idle sessions'))
      .finally(() => {
        this.#isRunning = false
      })
  }

  /** One round. */
  async reap(): Promise<void> {
    const { store, machines, updater, driverId, clock, logger } = this.#options
    machines.noteMissed()
    void updater.restoreUnsure()
    const overdue = await store.listOverdue(driverId, clock.now())
    const unfinished = await store.listUnfinished(driverId)
    const rounds = [
      ...overdue.map((session) => this.#reapOne(session)),
      ...unfinished.map((session) => this.#finishInterrupted(session)),
    ]
    for (const outcome of await Promise.allSettled(rounds)) {
      if (outcome.status === 'rejected') logger.error({ err: outcome.reason }, 'could not end a session; trying again')
    }
  }

  /** A crash of the database can come between any two steps, and leave a row that nobody is at work on. */
  async #finishInterrupted({ id, state }: UnfinishedSession): Promise<void> {
    const { store, machines, ender } = this.#options
    if (state === 'ending') return ender.finish(id)
    // The row was read before: whoever has a machine by now had one expected then.
    if (machines.has(id)) return
    if (state === 'active') return void (await ender.end(id))
    await machines.stop(id)
    await store.removeStarting(id)
  }

  /** Asks the agent first: a client may have come whose note has not reached the database. */
  async #reapOne({ id, idleSince }: OverdueSession): Promise<void> {
    const { ender, store, logger } = this.#options
    const current = await this.#idleSince(id)
    if (current !== undefined && (current === null || current > idleSince)) return store.setIdleSince(id, current)
    if (await ender.endIdle(id, idleSince)) logger.info({ sessionId: id }, 'a session ended by its timeout')
  }

  async #idleSince(id: SessionId): Promise<Date | null | undefined> {
    const socket = this.#options.machines.agentSocket(id)
    if (!socket) return undefined
    const state = await readAgentState(socket).catch(() => undefined)
    if (!state) return undefined // An agent that does not answer holds no session up.
    return state.idle_since === null ? null : new Date(state.idle_since)
  }
}
