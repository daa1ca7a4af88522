import type { SessionId } from '@berth/contract/common/ids.ts'
import { idPattern } from '@berth/contract/common/ids.ts'
import { LoadingCache } from '@berth/runtime/async/loading-cache.ts'
import { jwtVerify, SignJWT } from 'jose'
import { deriveKey } from './secrets.ts'

const algorithm = 'HS256'
const audience = 'session'
const maxRememberedTokens = 10_000

/**
 * The `jwt` in a session's URLs. It opens this one session and nothing else, and dies with it: whoever takes a token
 * must find the session active. The same session always gets the same token, so that old URLs stay good.
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

  /** The session that the token is for, or nothing when it is not one of ours. */
  async verify(token: string): Promise<SessionId | undefined> {
    try {
      const { payload } = await jwtVerify(token, this.#key, { algorithms: [algorithm], audience })
      return payload.sub !== undefined && idPattern.test(payload.sub) ? (payload.sub as SessionId) : undefined
    } catch {
      return undefined // Forged, damaged or made with another key: all the same to its bearer.
    }
  }
}
