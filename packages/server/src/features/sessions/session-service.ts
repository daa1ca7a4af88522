import type { ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { SessionTerminator } from './end/end-session.ts'
import type { SessionResolver } from './records/resolve-session.ts'
import type { Session, SessionElsewhere } from './records/session.ts'
import type { SessionFilter, SessionStore } from './records/session-store.ts'

export type { Session } from './records/session.ts'

interface SessionServiceOptions {
  readonly store: SessionStore
  readonly resolver: SessionResolver
  readonly terminator: SessionTerminator
  /** Sessions with this driver id belong to this server. */
  readonly driverId: string
  /** The error for a session of another server. */
  readonly elsewhere: SessionElsewhere
}

/** The public operations on sessions. */
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

  /** The active sessions that were created within an invocation. */
  async listOfInvocation(projectId: ProjectId, invocationId: string): Promise<readonly Session[]> {
    return this.#options.store.listOfInvocation(projectId, invocationId)
  }

  /** Ends the sessions on this server, and returns the servers of the others. */
  async deleteOfInvocation(projectId: ProjectId, invocationId: string): Promise<readonly string[]> {
    const { terminator, driverId } = this.#options
    const sessions = await this.listOfInvocation(projectId, invocationId)
    const own = sessions.filter(({ driver_id }) => driver_id === driverId)
    await Promise.all(own.map(({ id }) => terminator.end(id)))
    return [...new Set(sessions.map(({ driver_id }) => driver_id))].filter((id) => id !== driverId)
  }

  /** Ends the session and resolves when nothing of it runs. Of two concurrent deletes, one finds no session. */
  async delete(projectId: ProjectId, idOrName: string): Promise<void> {
    const { resolver, terminator, store, driverId, elsewhere } = this.#options
    const { id } = await resolver.resolve({ projectId }, idOrName, { orStarting: true })
    // Only its server can save the profile and stop the machine.
    if (await terminator.endHere(id)) return
    const server = await store.findServer(id)
    if (server !== undefined && server !== driverId) throw new BerthError(elsewhere)
    throw new BerthError('session_not_found', { session: idOrName })
  }
}
