import type { BrowserUpdateRequest } from '@berth/contract/browsers/browser-update.ts'
import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { SessionLocks } from '../../../cluster/session-locks.ts'
import type { LifecycleEvents } from '../machines/lifecycle-events.ts'
import type { SessionResolver } from '../records/resolve-session.ts'
import type { Session, SessionElsewhere } from '../records/session.ts'
import type { SessionStore } from '../records/session-store.ts'
import type { PlanChange, RestoreSession, SessionChange } from './session-change.ts'

interface SessionUpdaterOptions {
  readonly store: SessionStore
  readonly resolver: SessionResolver
  /** In the order in which they are applied. Changes that cannot be undone come last. */
  readonly plans: readonly PlanChange[]
  readonly restores: readonly RestoreSession[]
  /** Serialises the updates of one session on all servers. */
  readonly locks: SessionLocks
  /** Sessions with this driver id belong to this server. */
  readonly driverId: string
  /** The error for a session of another server. */
  readonly elsewhere: SessionElsewhere
  readonly events: LifecycleEvents
  readonly logger: Logger
}

/**
 * Updates sessions: an update is applied completely or not at all, and one session has one update at a time.
 *
 * First every part is checked, then the browser is changed, then the row, by one statement that requires the session to
 * be active. Meanwhile no database lock is held, so a slow browser or an agent that never responds blocks neither a delete
 * nor other users of the database. Until the row is written it contains the previous settings, and after an interruption
 * the browser is restored to the row.
 */
export class SessionUpdater {
  readonly #options: SessionUpdaterOptions
  /** Sessions whose browsers may differ from their rows. */
  readonly #inconsistent = new Set<SessionId>()

  constructor(options: SessionUpdaterOptions) {
    this.#options = options
  }

  async update(projectId: ProjectId, idOrName: string, update: BrowserUpdateRequest): Promise<Session> {
    const { id } = await this.#options.resolver.resolve({ projectId }, idOrName)
    return this.#options.locks.run(id, () => this.#update(id, update).catch((error) => this.#explain(id, error)))
  }

  /** A session that moves meanwhile loses its route here. The caller repeats the update, which reaches the new server. */
  async #explain(id: SessionId, error: unknown): Promise<never> {
    const mayHaveMoved = error instanceof BerthError && error.code === 'session_unreachable'
    if (mayHaveMoved) await this.#getHere(id)
    throw error
  }

  /** Applies the row to the running session, completely or only these parts. */
  async restore(id: SessionId, restores = this.#options.restores): Promise<void> {
    return this.#options.locks.run(id, () => this.#restore(id, restores))
  }

  /**
   * Restores the sessions that may differ from their rows. Called periodically, because the database or an agent may be
   * unavailable for long.
   */
  async restoreInconsistent(): Promise<void> {
    const unsure = [...this.#inconsistent]
    // Removed until it fails again: while an attempt takes long, no second one may start.
    this.#inconsistent.clear()
    await Promise.all(unsure.map((id) => this.restore(id)))
  }

  async #update(id: SessionId, update: BrowserUpdateRequest): Promise<Session> {
    const { plans, events } = this.#options
    const session = await this.#getHere(id)
    const changes: SessionChange[] = []
    for (const plan of plans) {
      const change = await plan(session, update)
      if (change) changes.push(change)
    }
    const columns = Object.assign({}, ...changes.map((change) => change.columns))
    // A part may only change the browser.
    const write = Object.keys(columns).length > 0 ? () => this.#write(id, columns) : () => this.#getActive(id)
    const updated = await this.#apply(session, changes, write)
    for (const { afterwards } of changes) afterwards?.()
    events.emit('sessionChanged', updated.project_id, id)
    return updated
  }

  async #write(id: SessionId, columns: SessionChange['columns']): Promise<Session> {
    const { store, elsewhere } = this.#options
    const updated = await store.updateHere(id, columns ?? {})
    if (updated) return updated
    await this.#getActive(id)
    throw new BerthError(elsewhere)
  }

  /** Changes the browser, then the row. If one of them fails, undoes the changes of the browser. */
  async #apply(session: Session, changes: readonly SessionChange[], write: () => Promise<Session>): Promise<Session> {
    const applied: SessionChange[] = []
    try {
      for (const change of changes) {
        if (!change.apply) continue
        await change.apply()
        applied.push(change)
      }
      return await write()
    } catch (error) {
      // The failed change may be partially applied, and an interrupted write of the row may have succeeded.
      if (changes.some(({ apply }) => apply)) this.#inconsistent.add(session.id)
      await this.#revert(session.id, applied)
      // If the session was deleted meanwhile, reports that instead of the consequences.
      await this.#getActive(session.id)
      throw error
    }
  }

  async #revert(id: SessionId, applied: readonly SessionChange[]): Promise<void> {
    for (const { revert } of applied.toReversed()) {
      await revert?.().catch((failure: unknown) =>
        this.#options.logger.warn({ err: failure, sessionId: id }, 'could not undo a part of a failed update'),
      )
    }
  }

  async #restore(id: SessionId, restores: readonly RestoreSession[]): Promise<void> {
    const { store, driverId, logger } = this.#options
    try {
      const session = await store.findRunning(id)
      // If the session has moved, its new server restores it.
      if (session?.driver_id === driverId) for (const restore of restores) await restore(session)
    } catch (error) {
      this.#inconsistent.add(id)
      logger.warn({ err: error, sessionId: id }, 'could not restore a browser to the settings of its session; retrying')
    }
  }

  async #getActive(id: SessionId): Promise<Session> {
    const session = await this.#options.store.findActive(id)
    if (!session) throw new BerthError('session_not_found', { session: id })
    return session
  }

  async #getHere(id: SessionId): Promise<Session> {
    const { driverId, elsewhere } = this.#options
    const session = await this.#getActive(id)
    if (session.driver_id !== driverId) throw new BerthError(elsewhere)
    return session
  }
}
