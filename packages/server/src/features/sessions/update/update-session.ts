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
  /** In the order in which they are applied: what cannot be taken back comes last. */
  readonly plans: readonly PlanChange[]
  readonly restores: readonly RestoreSession[]
  /** Of one session one update at a time, on whichever server. */
  readonly locks: SessionLocks
  /** Whose sessions this server updates. */
  readonly driverId: string
  /** What a caller is told of a session that another server has. */
  readonly elsewhere: SessionElsewhere
  readonly events: LifecycleEvents
  readonly logger: Logger
}

/**
 * Updates sessions: all of an update or nothing of it, and of one session one update at a time.
 *
 * First every part is checked, then the browser is changed, then the row, by one statement that finds the session only
 * while it is active. Nothing is locked meanwhile: a browser that takes its time, or an agent that never answers, holds
 * up neither a delete nor anybody else's use of the database. Until the row is written it tells what was before, and
 * whatever cuts an update off, the row is what the browser is brought back to.
 */
export class SessionUpdater {
  readonly #options: SessionUpdaterOptions
  /** Whose browsers may not be what their rows say. */
  readonly #unsure = new Set<SessionId>()

  constructor(options: SessionUpdaterOptions) {
    this.#options = options
  }

  async update(projectId: ProjectId, idOrName: string, update: BrowserUpdateRequest): Promise<Session> {
    const { id } = await this.#options.resolver.resolve({ projectId }, idOrName)
    return this.#options.locks.run(id, () => this.#update(id, update).catch((error) => this.#explain(id, error)))
  }

  /** A session that another server gets meanwhile loses its way out here, and the update can be repeated there. */
  async #explain(id: SessionId, error: unknown): Promise<never> {
    const mayHaveMoved = error instanceof BerthError && error.code === 'session_unreachable'
    if (mayHaveMoved) await this.#getHere(id)
    throw error
  }

  /** Makes the running session what its row says, in all parts or in these alone. */
  async restore(id: SessionId, restores = this.#options.restores): Promise<void> {
    return this.#options.locks.run(id, () => this.#restore(id, restores))
  }

  /** Restores what was left unsure. Called again and again, for the database or an agent may be away for longer. */
  async restoreUnsure(): Promise<void> {
    const unsure = [...this.#unsure]
    // Taken out until it fails again: of one that takes long there must not be a second attempt behind the first.
    this.#unsure.clear()
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
    // A part may change the browser alone.
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

  /** Changes the browser, then the row; when one of it fails, what was done to the browser is taken back. */
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
      // It was refused, but what failed may have been done half, and a row whose writing broke off may be written.
      if (changes.some(({ apply }) => apply)) this.#unsure.add(session.id)
      await this.#revert(session.id, applied)
      // One that was deleted meanwhile has taken its machine along, and that is not the caller's to puzzle over.
      await this.#getActive(session.id)
      throw error
    }
  }

  async #revert(id: SessionId, applied: readonly SessionChange[]): Promise<void> {
    for (const { revert } of applied.toReversed()) {
      await revert?.().catch((failure: unknown) =>
        this.#options.logger.warn({ err: failure, sessionId: id }, 'could not take back a part of a refused update'),
      )
    }
  }

  async #restore(id: SessionId, restores: readonly RestoreSession[]): Promise<void> {
    const { store, driverId, logger } = this.#options
    try {
      const session = await store.findRunning(id)
      // Another server that has it now makes it so when it takes it up.
      if (session?.driver_id === driverId) for (const restore of restores) await restore(session)
    } catch (error) {
      this.#unsure.add(id)
      logger.warn({ err: error, sessionId: id }, 'could not make a browser what its session says; trying again')
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
