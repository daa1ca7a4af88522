import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { ResolvedSession, SessionStore } from './session-store.ts'

/**
 * The caller: the holder of a key has access to the sessions of a project, the bearer of a session's token to that
 * session.
 */
export type SessionCaller = { readonly projectId: ProjectId } | { readonly sessionId: SessionId }

/** Resolves the session that a request names, for every root under which sessions are served. */
export class SessionResolver {
  readonly #store: SessionStore

  constructor(store: SessionStore) {
    this.#store = store
  }

  /**
   * Finds the active session by id or, if there is none, by name. With `orStarting`, includes sessions that are not
   * ready yet.
   */
  async resolve(
    caller: SessionCaller,
    idOrName: string,
    { orStarting = false }: { readonly orStarting?: boolean } = {},
  ): Promise<ResolvedSession> {
    const session = await this.#store.resolve(caller, idOrName, orStarting ? ['starting', 'active'] : ['active'])
    // The error does not reveal whether the session exists in another project.
    if (!session) throw new BerthError('session_not_found', { session: idOrName })
    return session
  }
}
