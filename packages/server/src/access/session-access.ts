import type { ApiKeyId, SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { OrganizationStore } from '../features/organizations/organization-store.ts'
import type { SessionResolver } from '../features/sessions/records/resolve-session.ts'
import type { ResolvedSession } from '../features/sessions/records/session-store.ts'
import type { ApiKeyCache } from './api-key-cache.ts'
import { hashApiKey } from './secrets.ts'
import type { SessionCredentials } from './session-credentials.ts'
import type { SessionTokens, TokenSubject } from './session-tokens.ts'

interface SessionAccessOptions {
  readonly tokens: SessionTokens
  readonly keys: ApiKeyCache
  readonly organizations: OrganizationStore
  readonly resolver: SessionResolver
}

/** Includes the API key, if the caller used one. */
type AdmittedSession = ResolvedSession & { readonly keyId?: ApiKeyId }

const tokenHint =
  'Append ?jwt=<token> to the address, as in cdp_ws_url, or send the header Authorization: Bearer <token or API key>.'
/** The base64url parts of a token. API keys contain no dots. */
const tokenForm = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** Admits callers to an active session: those with its token, or with an API key for its project. */
export class SessionAccess {
  readonly #options: SessionAccessOptions

  constructor(options: SessionAccessOptions) {
    this.#options = options
  }

  /** `named` is the session in the path, if there is one. The token in the query takes precedence over the header. */
  async admit({ token, bearer }: SessionCredentials, named: string | undefined): Promise<AdmittedSession> {
    const shown = tokenIn({ token, bearer })
    if (shown) return this.#admitToken(await this.#options.tokens.verify(shown.token), named, shown.place)
    return this.#admitKey(bearer, named)
  }

  /** Like `admit`, for the live view: also accepts tokens for viewing only. */
  async admitViewer(
    { token, bearer }: SessionCredentials,
    named: string,
  ): Promise<{ readonly session: AdmittedSession; readonly isReadOnly: boolean }> {
    const shown = tokenIn({ token, bearer })
    if (!shown) return { session: await this.#admitKey(bearer, named), isReadOnly: false }
    const subject = await this.#options.tokens.verifyForView(shown.token)
    const session = await this.#admitToken(subject, named, shown.place)
    return { session, isReadOnly: subject?.isReadOnly !== false }
  }

  /** Returns the token in the session's URLs. */
  tokenOf({ id, created_at, lease_number }: ResolvedSession): Promise<string> {
    return this.#options.tokens.issue(id, created_at, lease_number)
  }

  async #admitToken(
    subject: TokenSubject | undefined,
    named: string | undefined,
    place: string,
  ): Promise<ResolvedSession> {
    const refuse = (reason: string) => new BerthError('unauthorized', { reason: `${place}: ${reason} ${tokenHint}` })
    if (!subject || (named !== undefined && named !== subject.sessionId)) {
      throw refuse('is not the token of this session.')
    }
    const { sessionId, leaseNumber } = subject
    const session = await this.#options.resolver.resolve({ sessionId }, sessionId)
    if (session.lease_number !== leaseNumber) throw refuse('the browser was released to its pool.')
    return session
  }

  async #admitKey(key: string | undefined, named: string | undefined): Promise<AdmittedSession> {
    if (key === undefined) {
      throw new BerthError('unauthorized', { reason: `jwt: the session's token is missing. ${tokenHint}` })
    }
    const { keys, organizations, resolver } = this.#options
    const scope = await keys.find(hashApiKey(key))
    if (!scope) {
      throw new BerthError('unauthorized', { reason: `authorization: the API key is not valid. ${tokenHint}` })
    }
    if (named === undefined) {
      const reason = 'The address contains no session: use /s/{session_id}, or append ?jwt=<token>.'
      throw new BerthError('unauthorized', { reason })
    }
    const session = await resolver.resolve({ sessionId: named as SessionId }, named)
    const isWithin =
      scope.projectId === null
        ? (await organizations.findProject(scope.organizationId, { id: session.project_id })) !== undefined
        : scope.projectId === session.project_id && scope.isProjectActive
    if (!isWithin) throw new BerthError('session_not_found', { session: named })
    return { ...session, keyId: scope.keyId }
  }
}

function tokenIn({
  token,
  bearer,
}: SessionCredentials): { readonly token: string; readonly place: string } | undefined {
  if (token !== undefined) return { token, place: 'jwt' }
  return bearer !== undefined && tokenForm.test(bearer) ? { token: bearer, place: 'authorization' } : undefined
}
