import type { SessionId } from '@berth/contract/common/ids.ts'
import { idPattern } from '@berth/contract/common/ids.ts'
import { LoadingCache } from '@berth/runtime/async/loading-cache.ts'
import { jwtVerify, SignJWT } from 'jose'
import { deriveKey } from './secrets.ts'

const algorithm = 'HS256'
const audience = 'session'
const maxRememberedTokens = 10_000

/**
 * Issues and verifies the `jwt` of a session's URLs. A token is valid for one session and only while the caller of
 * `verify` finds it active. A session always gets the same token, so that its URLs stay valid.
 */
export class SessionTokens {
  readonly #key: Uint8Array
  readonly #issued = new LoadingCache<SessionId, string>({ maxEntries: maxRememberedTokens })

  constructor(masterKey: string) {
    this.#key = deriveKey(masterKey, 'session tokens')
  }

  issue(sessionId: SessionId, createdAt: Date): Promise<string> {
    return this.#issued.get(sessionId, () =>
      new SignJWT()
        .setProtectedHeader({ alg: algorithm, typ: 'JWT' })
        .setSubject(sessionId)
        .setAudience(audience)
        .setIssuedAt(createdAt)
        .sign(this.#key),
    )
  }

  /** Returns the session of the token, or undefined when berth did not issue it. */
  async verify(token: string): Promise<SessionId | undefined> {
    try {
      const { payload } = await jwtVerify(token, this.#key, { algorithms: [algorithm], audience })
      return payload.sub !== undefined && idPattern.test(payload.sub) ? (payload.sub as SessionId) : undefined
    } catch {
      return undefined // Forged, damaged and foreign tokens are treated alike.
    }
  }
}
