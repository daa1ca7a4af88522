import type { SessionId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { within } from '@berth/runtime/async/deadline.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { readAgentState } from '../agent-link/agent-client.ts'
import type { SessionTerminator } from '../features/sessions/end/end-session.ts'
import type { SessionMachines } from '../features/sessions/machines/session-machines.ts'
import type { OverdueSession, SessionStore, UnfinishedSession } from '../features/sessions/records/session-store.ts'
import type { SessionUpdater } from '../features/sessions/update/update-session.ts'

const closeLimitMilliseconds = 2_000

interface ReaperOptions {
  readonly driverId: string
  readonly store: SessionStore
  readonly machines: SessionMachines
  readonly terminator: SessionTerminator
  readonly updater: SessionUpdater
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Ends sessions of this server that were idle for their whole time, brings to an end what was interrupted, and stops
 * machines whose sessions another server has ended because this one was away from the database for too long.
 */
export class SessionReaper {
  readonly #options: ReaperOptions
  readonly #timer: NodeJS.Timeout
  readonly #atWork = new Map<SessionId, Promise<void>>()
  #looking: Promise<unknown> = Promise.resolve()
  #isLooking = false

  constructor(options: ReaperOptions, intervalMilliseconds: number) {
    this.#options = options
    this.#timer = setInterval(() => this.#tick(), intervalMilliseconds)
  }

  /** Starts no further round. What is being ended has a moment; the next server ends what is left. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#looking
    await within(closeLimitMilliseconds, Promise.all(this.#atWork.values())).catch(() => {})
  }

  /** Does not wait for the sessions that end: one that saves its profile for a minute must not hold up all others. */
  #tick(): void {
    if (this.#isLooking) return
    this.#isLooking = true
    this.#looking = this.#look()
      .catch((error: Error) => this.#options.logger.warn({ reason: error.message }, 'could not look for idle sessions'))
      .finally(() => {
        this.#isLooking = false
      })
  }

  /** One round, and the end of all that it has begun. */
  async reap(): Promise<void> {
    await this.#look()
    await Promise.all(this.#atWork.values())
  }

  async #look(): Promise<void> {
    const { store, machines, updater, driverId, clock } = this.#options
    machines.noteMissed()
    void updater.restoreUnsure()
    const overdue = await store.listOverdue(driverId, clock.now())
    const held = machines.list()
    const unfinished = await store.listUnfinished(driverId)
    const known = new Set(unfinished.map(({ id }) => id))
    for (const session of held) if (!known.has(session.id)) this.#begin(session.id, () => machines.stop(session))
    for (const session of overdue) this.#begin(session.id, () => this.#reapOne(session))
    for (const session of unfinished) this.#begin(session.id, () => this.#finishInterrupted(session))
  }

  /** A session that is being worked on already is left to that. */
  #begin(id: SessionId, work: () => Promise<void>): void {
    if (this.#atWork.has(id)) return
    const done = work()
      .catch((error: unknown) => this.#options.logger.error({ err: error }, 'could not end a session; trying again'))
      .finally(() => this.#atWork.delete(id))
    this.#atWork.set(id, done)
  }

  /** A crash of the database can come between any two steps, and leave a row that nobody is at work on. */
  async #finishInterrupted(session: UnfinishedSession): Promise<void> {
    const { id, state } = session
    const { store, machines, terminator } = this.#options
    if (state === 'ending') return terminator.finish(id)
    // The row was read before: whoever has a machine by now had one expected then.
    if (machines.has(id)) return
    if (state === 'active') return void (await terminator.end(id))
    await machines.stop(session)
    await store.removeStarting(id)
  }

  /** Asks the agent first: a client may have come whose note has not reached the database. */
  async #reapOne({ id, idleSince }: OverdueSession): Promise<void> {
    const { terminator, store, logger } = this.#options
    const current = await this.#idleSince(id)
    if (current !== undefined && (current === null || current > idleSince)) return store.setIdleSince(id, current)
    if (await terminator.endIdle(id, idleSince)) logger.info({ sessionId: id }, 'a session ended by its timeout')
  }

  async #idleSince(id: SessionId): Promise<Date | null | undefined> {
    const machine = this.#options.machines.find(id)
    if (!machine) return undefined
    const state = await readAgentState(machine).catch(() => undefined)
    if (!state) return undefined // An agent that does not answer holds no session up.
    return state.idle_since === null ? null : new Date(state.idle_since)
  }
}
