import type { SessionId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { KeyedQueue } from '@berth/runtime/async/keyed-queue.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { SessionConnections } from '../../../agent-link/relay/session-connections.ts'
import type { SessionLocks } from '../../../cluster/session-locks.ts'
import type { SessionTerminator } from '../end/end-session.ts'
import type { SessionMachines } from '../machines/session-machines.ts'
import type { RestoreSession } from '../update/session-change.ts'
import type { LeaseStore } from './lease-store.ts'

interface LeaseReturnsOptions {
  readonly store: Pick<LeaseStore, 'findReturning' | 'restoreDefaults' | 'finishReturn'>
  readonly connections: Pick<SessionConnections, 'cut'>
  readonly machines: Pick<SessionMachines, 'endClients'>
  readonly locks: Pick<SessionLocks, 'run'>
  /** Each applies a part of the row to the running session. */
  readonly restores: readonly RestoreSession[]
  readonly terminator: Pick<SessionTerminator, 'end'>
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Returns browsers of this server from their last callers: closes their connections and restores what the lease has
 * changed. A crash in between leaves a row in the state `returning`, for which the reaper's next round repeats
 * everything.
 */
export class LeaseReturns {
  readonly #options: LeaseReturnsOptions
  /** Calls do not share a run: a browser can be leased and returned again before the earlier call resolves. */
  readonly #returns = new KeyedQueue<SessionId>()

  constructor(options: LeaseReturnsOptions) {
    this.#options = options
  }

  /** Resolves when the browser is ready for the next caller, or has been ended because it cannot be. */
  finish(id: SessionId): Promise<void> {
    return this.#returns.run(id, () => this.#finish(id))
  }

  async #finish(id: SessionId): Promise<void> {
    const { store, connections, machines, locks } = this.#options
    // If it was returned before and leased again, the new caller keeps its connections.
    if (!(await store.findReturning(id))) return
    // The agent reports their disconnects. One that does not respond is not waited for.
    await machines.endClients(id)
    // Before waiting for the lock: an update of the last caller may take long.
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
      // Nobody else may get it in the state that its last caller left.
      logger.warn({ err: error, sessionId: id }, 'a browser could not be returned to its pool and is replaced')
      await terminator.end(id)
      return
    }
    const { pool_id: pool } = returning.session
    // If its pool was deleted meanwhile, the browser is ended with it.
    if (pool) await store.finishReturn(pool, id, clock.now())
  }
}
