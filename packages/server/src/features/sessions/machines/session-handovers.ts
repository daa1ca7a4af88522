import type { SessionId } from '@berth/contract/common/ids.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { SessionConnections } from '../../../agent-link/relay/session-connections.ts'
import type { MovedSession, SessionMoves } from '../records/session-moves.ts'
import type { SessionStore, UnfinishedSession } from '../records/session-store.ts'
import type { ReplayService } from '../replays/replay-service.ts'
import type { SessionRecovery } from './recover-sessions.ts'
import type { SessionMachines } from './session-machines.ts'

interface SessionHandoversOptions {
  readonly recovery: SessionRecovery
  readonly moves: SessionMoves
  readonly store: SessionStore
  readonly machines: SessionMachines
  readonly replays: Pick<ReplayService, 'finishLeft' | 'endAtMove'>
  readonly connections: SessionConnections
  readonly serverId: string
  readonly logger: Logger
}

/**
 * Moves sessions between servers when every server can reach every machine. The row names the server of a session. That
 * server adopts the machine at the first request for the session, or in the next round of the reaper.
 */
export class SessionHandovers {
  readonly #options: SessionHandoversOptions
  readonly #running = new Map<SessionId, Promise<void>>()
  #isLeaving = false

  constructor(options: SessionHandoversOptions) {
    this.#options = options
  }

  /** Takes over the sessions of lost servers, to be adopted. */
  async moveFromGone(): Promise<void> {
    const { moves, logger } = this.#options
    const moved = await moves.moveFromGone()
    if (moved.length > 0) logger.warn({ sessions: moved.length }, 'took over the sessions of a lost server')
  }

  /** Hands the sessions of this server over to others, if there are any. Open connections of clients continue. */
  async handOverAll(): Promise<number> {
    const { moves, logger } = this.#options
    this.#isLeaving = true
    const moved = await moves.moveToOthers()
    await Promise.all(moved.map((session) => this.#handOver(session)))
    if (moved.length > 0) logger.info({ sessions: moved.length }, 'handed sessions over to other servers')
    return moved.length
  }

  async #handOver({ id, driver_id, pool_id }: MovedSession): Promise<void> {
    const { machines, connections, replays, serverId } = this.#options
    if (driver_id === serverId) return
    // The next caller must not share the browser with this one, and only the new server will know when it is leased.
    if (pool_id !== null) connections.cut(id)
    await replays.endAtMove(id)
    await machines.handOver(id)
  }

  /**
   * Adopts the session's machine on this server. Concurrent calls share one adoption. Ends a session without a machine.
   */
  adopt(session: UnfinishedSession): Promise<void> {
    const { id } = session
    const known = this.#running.get(id)
    if (known) return known
    const { machines, recovery, replays } = this.#options
    if (machines.has(id)) return Promise.resolve()
    const running = Promise.all([recovery.recover(session, true), replays.finishLeft(id)])
      .then(() => {})
      .finally(() => this.#running.delete(id))
    this.#running.set(id, running)
    return running
  }

  /** Resolves when the machine of a session is here, if it belongs here. Called for a request that has arrived here. */
  async adoptForRequest(id: SessionId): Promise<void> {
    const { machines, store, serverId } = this.#options
    const running = this.#running.get(id)
    if (running) return running.catch(() => {})
    if (machines.has(id)) return
    const session = await store.findUnfinished(serverId, id)
    if (session && session.state !== 'starting') await this.adopt(session).catch(() => {})
  }

  /** Detaches from a machine whose session another server has taken over, and returns whether one has. */
  async releaseIfMoved(id: SessionId): Promise<boolean> {
    const { store, machines, connections, serverId } = this.#options
    const server = await store.findServer(id)
    if (server === undefined || server === serverId) return false
    // This server is handing it over.
    if (this.#isLeaving) return true
    // From now on, this server would not notice that they lose the session.
    connections.cut(id)
    await machines.detach(id)
    return true
  }
}
