import type { BrowserUpdateRequest } from '@berth/contract/browsers/browser-update.ts'
import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { Session } from './session.ts'
import type { PlanChange, SessionChange } from './session-change.ts'
import type { SessionStore } from './session-store.ts'

interface SessionUpdaterOptions {
  readonly store: SessionStore
  /** In the order in which they are applied. */
  readonly plans: readonly PlanChange[]
  readonly logger: Logger
}

/**
 * Updates sessions: all of an update or nothing of it, and of one session one update at a time. The row is locked from
 * the checks to the commit, so that a session which is updated does not end meanwhile, and of two that take one name
 * the second is refused before anything was done to its browser.
 */
export class SessionUpdater {
  readonly #options: SessionUpdaterOptions
  readonly #last = new Map<SessionId, Promise<unknown>>()

  constructor(options: SessionUpdaterOptions) {
    this.#options = options
  }

  async update(projectId: ProjectId, idOrName: string, update: BrowserUpdateRequest): Promise<Session> {
    const found = await this.#options.store.find(projectId, idOrName)
    if (!found) throw new BerthError('session_not_found', { session: idOrName })
    return this.#inTurn(found.id, () => this.#update(found.id, update))
  }

  async #update(id: SessionId, update: BrowserUpdateRequest): Promise<Session> {
    const { store, plans } = this.#options
    const changes: SessionChange[] = []
    const updated = await store.changing(id, async (session, write) => {
      for (const plan of plans) {
        const change = await plan(session, update)
        if (change) changes.push(change)
      }
      const written = await write(Object.assign({}, ...changes.map(({ columns }) => columns)))
      await this.#applyAll(changes)
      return written
    })
    for (const { afterwards } of changes) afterwards?.()
    return updated
  }

  async #applyAll(changes: readonly SessionChange[]): Promise<void> {
    const applied: SessionChange[] = []
    try {
      for (const change of changes) {
        await change.apply?.()
        applied.push(change)
      }
    } catch (error) {
      for (const { revert } of applied.reverse()) {
        await revert?.().catch((failure: unknown) =>
          // The update is refused in any case; what cannot be taken back is the operator's to know.
          this.#options.logger.error({ err: failure }, 'a part of a refused update could not be taken back'),
        )
      }
      throw error
    }
  }

  /** One after another, without a database connection for each that waits. */
  #inTurn<Result>(id: SessionId, work: () => Promise<Result>): Promise<Result> {
    const result = (this.#last.get(id) ?? Promise.resolve()).then(work)
    const settled = result.then(
      () => {},
      () => {},
    )
    this.#last.set(id, settled)
    void settled.then(() => {
      if (this.#last.get(id) === settled) this.#last.delete(id)
    })
    return result
  }
}
