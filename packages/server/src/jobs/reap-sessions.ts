import type { SessionId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { within } from '@berth/runtime/async/deadline.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { readAgentState } from '../agent-link/agent-client.ts'
import type { SessionTerminator } from '../features/sessions/end/end-session.ts'
import type { SessionHandovers } from '../features/sessions/machines/session-handovers.ts'
import type { SessionMachines } from '../features/sessions/machines/session-machines.ts'
import type { LeaseReturns } from '../features/sessions/pools/lease-returns.ts'
import type { SessionOnMachine } from '../features/sessions/records/session.ts'
import type { OverdueSession, SessionStore, UnfinishedSession } from '../features/sessions/records/session-store.ts'
import type { ReplayService } from '../features/sessions/replays/replay-service.ts'
import type { SessionUpdater } from '../features/sessions/update/update-session.ts'

const closeLimitMilliseconds = 2_000

interface ReaperOptions {
  readonly driverId: string
  readonly store: SessionStore
  readonly machines: SessionMachines
  readonly terminator: SessionTerminator
  readonly updater: SessionUpdater
  readonly leaseReturns: LeaseReturns
  readonly replays: Pick<ReplayService, 'finishInterrupted'>
  /** Absent when each server has its own machines. */
  readonly handovers: SessionHandovers | undefined
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Ends sessions of this server that have been idle for their timeout, completes interrupted operations, and stops
 * machines whose sessions another server has ended because this one lost the database for too long. When machines are
 * shared, it adopts the sessions that have moved to this server, and detaches from those that have moved away.
 */
export class SessionReaper {
  readonly #options: ReaperOptions
  readonly #timer: NodeJS.Timeout
  readonly #inProgress = new Map<SessionId, Promise<void>>()
  #round: Promise<unknown> = Promise.resolve()
  #isRunning = false

  constructor(options: ReaperOptions, intervalMilliseconds: number) {
    this.#options = options
    this.#timer = setInterval(() => this.#tick(), intervalMilliseconds)
  }

  /** Starts no more rounds. Sessions that are ending get a short time, and the next server ends the rest. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#round
    await within(closeLimitMilliseconds, Promise.all(this.#inProgress.values())).catch(() => {})
  }

  /** Does not wait for sessions that are ending: saving a profile can take a minute and must not delay the others. */
  #tick(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    this.#round = this.#startRound()
      .catch((error: Error) =>
        this.#options.logger.warn({ reason: error.message }, 'could not check for idle sessions'),
      )
      .finally(() => {
        this.#isRunning = false
      })
  }

  /** Runs one round and waits for everything it started. */
  async reap(): Promise<void> {
    await this.#startRound()
    await Promise.all(this.#inProgress.values())
  }

  async #startRound(): Promise<void> {
    const { store, machines, updater, replays, handovers, driverId, clock } = this.#options
    machines.noteMissed()
    await replays.finishInterrupted()
    void updater.restoreInconsistent()
    await handovers?.moveFromGone()
    const overdue = await store.listOverdue(driverId, clock.now())
    // Before the rows are read, so that every one of these sessions has a row by then.
    const held = machines.listRecorded()
    const unfinished = await store.listUnfinished(driverId)
    const known = new Set(unfinished.map(({ id }) => id))
    for (const session of held) if (!known.has(session.id)) this.#begin(session.id, () => this.#dropMachine(session))
    for (const session of overdue) this.#begin(session.id, () => this.#reapOne(session))
    for (const session of unfinished) this.#begin(session.id, () => this.#finishInterrupted(session))
  }

  /** Skips sessions that are being processed already. */
  #begin(id: SessionId, work: () => Promise<void>): void {
    if (this.#inProgress.has(id)) return
    const done = work()
      .catch((error: unknown) => this.#options.logger.error({ err: error }, 'could not end a session; retrying'))
      .finally(() => this.#inProgress.delete(id))
    this.#inProgress.set(id, done)
  }

  /** Its session has ended or has moved to another server. */
  async #dropMachine(session: SessionOnMachine): Promise<void> {
    const { machines, handovers } = this.#options
    if (!(await handovers?.releaseIfMoved(session.id))) await machines.stop(session)
  }

  /** The database can fail between any two steps and leave a row that nothing is working on. */
  async #finishInterrupted(session: UnfinishedSession): Promise<void> {
    const { id, state } = session
    const { store, machines, terminator, leaseReturns, handovers } = this.#options
    if (handovers && state !== 'starting' && !machines.has(id)) return handovers.adopt(session)
    if (state === 'ending') return terminator.finish(id)
    if (state === 'returning' && machines.has(id)) return leaseReturns.finish(id)
    // The row was read earlier. If there is a machine now, it was starting then.
    if (machines.has(id)) return
    if (state !== 'starting') return void (await terminator.end(id, 'machine_ended'))
    await machines.stop(session)
    await store.removeStarting(id)
  }

  /** Asks the agent first: a client may have connected since the database was updated. */
  async #reapOne({ id, idleSince }: OverdueSession): Promise<void> {
    const { terminator, store, logger } = this.#options
    const current = await this.#idleSince(id)
    if (current !== undefined && (current === null || current > idleSince)) return store.setIdleSince(id, current)
    if (await terminator.endIdle(id, idleSince)) logger.info({ sessionId: id }, 'a session ended by its timeout')
  }

  async #idleSince(id: SessionId): Promise<Date | null | undefined> {
    const { machines } = this.#options
    const machine = machines.find(id)
    // Nothing has happened in a frozen session, and a request would wake it.
    if (!machine || machines.isFrozen(id)) return undefined
    const state = await readAgentState(machine).catch(() => undefined)
    if (!state) return undefined // An agent that does not respond must not keep a session alive.
    return state.idle_since === null ? null : new Date(state.idle_since)
  }
}
