import type { SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Session } from '../features/sessions/session.ts'
import type { SessionStore } from '../features/sessions/session-store.ts'
import type { SessionTokens } from './session-tokens.ts'

/** Admits the bearer of a session's token to that session, for as long as it is active. */
export class SessionAccess {
  readonly #tokens: SessionTokens
  readonly #store: SessionStore

  constructor(tokens: SessionTokens, store: SessionStore) {
    this.#tokens = tokens
    this.#store = store
  }

  /** `named` is the session in the path, if the path names one: the token must be its own. */
  async admit(token: string | null, named: string | undefined): Promise<Session> {
    if (!token) throw new BerthError('unauthorized', { reason: "jwt: the session's token is missing from the query." })
    const sessionId = await this.#tokens.verify(token)
    if (!sessionId || (named !== undefined && named !== sessionId)) {
      throw new BerthError('unauthorized', { reason: 'jwt: is not the token of this session.' })
    }
    return this.#findActive(sessionId)
  }

  async #findActive(sessionId: SessionId): Promise<Session> {
    const session = await this.#store.findActive(sessionId)
    if (!session) throw new BerthError('session_not_found', { session: sessionId })
    return session
  }
}
