import type { ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { SessionTerminator } from './end/end-session.ts'
import type { SessionResolver } from './records/resolve-session.ts'
import type { Session } from './records/session.ts'
import type { SessionFilter, SessionStore } from './records/session-store.ts'

interface SessionServiceOptions {
  readonly store: SessionStore
  readonly resolver: SessionResolver
  readonly terminator: SessionTerminator
  /** Whose sessions this server ends. */
  readonly driverId: string
}

/** What callers see of sessions, and how they end them. */
export class SessionService {
  readonly #options: SessionServiceOptions

  constructor(options: SessionServiceOptions) {
    this.#options = options
  }

  async list(filter: SessionFilter, page: PageRequest): Promise<Page<Session>> {
    return this.#options.store.list(filter, page)
  }

  async get(projectId: ProjectId, idOrName: string, includeDeleted: boolean): Promise<Session> {
    const session = await this.#options.store.find(projectId, idOrName, includeDeleted)
    if (!session) throw new BerthError('session_not_found', { session: idOrName })
    return session
  }

  /** Ends the session and resolves when nothing of it runs. Of two deletes, one finds no session. */
  async delete(projectId: ProjectId, idOrName: string): Promise<void> {
    const { resolver, terminator, driverId } = this.#options
    const { id, driver_id } = await resolver.resolve({ projectId }, idOrName, { orStarting: true })
    // Only the server that has the machine can save its profile and stop it.
    if (driver_id !== driverId) throw new BerthError('session_unreachable')
    if (!(await terminator.end(id))) throw new BerthError('session_not_found', { session: idOrName })
  }
}
