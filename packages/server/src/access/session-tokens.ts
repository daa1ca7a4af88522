import type { SessionId } from '@berth/contract/common/ids.ts'
import { idPattern } from '@berth/contract/common/ids.ts'
import { LoadingCache } from '@berth/runtime/async/loading-cache.ts'
import { jwtVerify, SignJWT } from 'jose'
import { LRUCache } from 'lru-cache'
import { deriveKey } from './secrets.ts'

const algorithm = 'HS256'
/** What a token gives access to: the whole session, or only its view. */
const audiences = { session: 'session', view: 'view' } as const
const maxRememberedTokens = 10_000

/** The session and lease of a token. */
export interface TokenSubject {
  readonly sessionId: SessionId
  /** Counts the leases of a browser in a pool. 0 for other sessions. */
  readonly leaseNumber: number
}

/**
 * Issues and verifies the `jwt` of a session's URLs. A token is valid for one session, or one lease of it, and only
 * while the caller of `verify` finds that active. The token of a session never changes, so its URLs stay valid.
 */
export class SessionTokens {
  /** Imported once. Each use of the raw bytes would import them again. */
  readonly #key: Promise<CryptoKey>
  readonly #issued = new LoadingCache<string, string>({ maxEntries: maxRememberedTokens })
  /** Tokens that were issued or verified before. A token never changes. */
  readonly #known = new LRUCache<string, TokenSubject>({ max: maxRememberedTokens })

  constructor(masterKey: string) {
    const key = new Uint8Array(deriveKey(masterKey, 'session tokens'))
    this.#key = crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify'])
  }

  issue(sessionId: SessionId, createdAt: Date, leaseNumber = 0): Promise<string> {
    return this.#issue(audiences.session, { sessionId, leaseNumber }, createdAt)
  }

  /** A token for the live view without input, which gives access to nothing else. */
  issueForView(sessionId: SessionId, createdAt: Date, leaseNumber = 0): Promise<string> {
    return this.#issue(audiences.view, { sessionId, leaseNumber }, createdAt)
  }

  /** Returns the session of the token, or undefined if berth did not issue it or issued it for a view only. */
  async verify(token: string): Promise<TokenSubject | undefined> {
    return this.#verify(audiences.session, token)
  }

  /** Like `verify`, for the live view: accepts tokens of both kinds. */
  async verifyForView(token: string): Promise<(TokenSubject & { readonly isReadOnly: boolean }) | undefined> {
    const full = await this.#verify(audiences.session, token)
    if (full) return { ...full, isReadOnly: false }
    const view = await this.#verify(audiences.view, token)
    return view && { ...view, isReadOnly: true }
  }

  #issue(audience: string, { sessionId, leaseNumber }: TokenSubject, createdAt: Date): Promise<string> {
    return this.#issued.get(`${audience} ${sessionId} ${leaseNumber}`, async () => {
      const token = await new SignJWT(leaseNumber === 0 ? {} : { lease: leaseNumber })
        .setProtectedHeader({ alg: algorithm, typ: 'JWT' })
        .setSubject(sessionId)
        .setAudience(audience)
        .setIssuedAt(createdAt)
        .sign(await this.#key)
      this.#known.set(`${audience} ${token}`, { sessionId, leaseNumber })
      return token
    })
  }

  async #verify(audience: string, token: string): Promise<TokenSubject | undefined> {
    const known = this.#known.get(`${audience} ${token}`)
    if (known) return known
    try {
      const { payload } = await jwtVerify(token, await this.#key, { algorithms: [algorithm], audience })
      const { sub, lease = 0 } = payload
      if (sub === undefined || !idPattern.test(sub)) return undefined
      const subject = { sessionId: sub as SessionId, leaseNumber: Number(lease) }
      this.#known.set(`${audience} ${token}`, subject)
      return subject
    } catch {
      return undefined // Forged, damaged and foreign tokens are treated alike.
    }
  }
}
