import type { SessionId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { SingleFlight } from '@berth/runtime/async/single-flight.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { SessionConnections } from '../../../agent-link/relay/session-connections.ts'
import type { SessionLocks } from '../../../cluster/session-locks.ts'
import type { SessionTerminator } from '../end/end-session.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import type { RestoreSession } from '../update/session-change.ts'
import type { LeaseStore } from './lease-store.ts'

interface LeaseReturnsOptions {
  readonly store: LeaseStore
  readonly connections: SessionConnections
  readonly machines: Pick<SessionMachines, 'endClients'>
  readonly locks: SessionLocks
  /** Each gives the running session a part of what its row says. */
  readonly restores: readonly RestoreSession[]
  readonly terminator: SessionTerminator
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Takes browsers of this server from their last callers: their connections end, and what the lease has changed is
 * restored. A crash on the way leaves a row that says `returning`, and the reaper's next round does all of it again.
 */
export class LeaseReturns {
  readonly #options: LeaseReturnsOptions
  readonly #running = new SingleFlight<SessionId, void>()

  constructor(options: LeaseReturnsOptions) {
    this.#options = options
  }

  /** Resolves when the browser is ready for the next caller, or ended because it cannot be. */
  finish(id: SessionId): Promise<void> {
    return this.#running.run(id, () => this.#finish(id))
  }

  async #finish(id: SessionId): Promise<void> {
    const { store, connections, machines, locks } = this.#options
    // One that was taken back before, and is leased again, keeps the connections of its new caller.
    if (!(await store.findReturning(id))) return
    // Its agent tells that its clients lose it; one that does not answer is not waited for.
    await machines.endClients(id)
    // Before the lock is waited for: an update of the last caller may take its time.
    connections.cut(id)
    await locks.run(id, () => this.#restore(id))
  }

  async #restore(id: SessionId): Promise<void> {
    const { store, connections, restores, terminator, clock, logger } = this.#options
    const returning = await store.findReturning(id)
    if (!returning) return
    connections.cut(id)
    try {
      if (returning.isChanged) {
        const session = await store.restoreDefaults(id)
        if (session) for (const restore of restores) await restore(session)
      }
    } catch (error) {
      // Nobody else may get it as its last caller has left it.
      logger.warn({ err: error, sessionId: id }, 'a browser could not be taken back to its pool, and is replaced')
      await terminator.end(id)
      return
    }
    const { pool_id: pool } = returning.session
    // When its pool was deleted meanwhile, the browser went with it.
    if (pool) await store.finishReturn(pool, id, clock.now())
  }
}
