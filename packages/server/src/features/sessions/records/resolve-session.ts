import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { ResolvedSession, SessionStore } from './session-store.ts'

/** Who asks: the holder of a key sees the sessions of a project, the bearer of a session's token that one. */
export type SessionCaller = { readonly projectId: ProjectId } | { readonly sessionId: SessionId }

/** The one way from what a request names to a session, for every root under which sessions are served. */
export class SessionResolver {
  readonly #store: SessionStore

  constructor(store: SessionStore) {
    this.#store = store
  }

  /** The active session with the id or, failing that, the name; with `orStarting` also one that is not ready yet. */
  async resolve(
    caller: SessionCaller,
    idOrName: string,
    { orStarting = false }: { readonly orStarting?: boolean } = {},
  ): Promise<ResolvedSession> {
    const session = await this.#store.resolve(caller, idOrName, orStarting ? ['starting', 'active'] : ['active'])
    // Absent and somebody else's are the same to whoever asks.
    if (!session) throw new BerthError('session_not_found', { session: idOrName })
    return session
  }
}
