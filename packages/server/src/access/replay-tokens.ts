import { idPattern, type ReplayId } from '@berth/contract/common/ids.ts'
import { LoadingCache } from '@berth/runtime/async/loading-cache.ts'
import { jwtVerify, SignJWT } from 'jose'
import { deriveKey } from './secrets.ts'

const algorithm = 'HS256'
const audience = 'replay'
const maxRememberedTokens = 10_000

/** Issues and verifies the `jwt` of a recording's page. It gives access to this recording only, while it exists. */
export class ReplayTokens {
  readonly #key: Uint8Array
  readonly #issued = new LoadingCache<ReplayId, string>({ maxEntries: maxRememberedTokens })

  constructor(masterKey: string) {
    this.#key = deriveKey(masterKey, 'replay tokens')
  }

  issue(id: ReplayId, startedAt: Date): Promise<string> {
    return this.#issued.get(id, () =>
      new SignJWT()
        .setProtectedHeader({ alg: algorithm, typ: 'JWT' })
        .setSubject(id)
        .setAudience(audience)
        .setIssuedAt(startedAt)
        .sign(this.#key),
    )
  }

  /** Returns the recording of the token, or undefined when berth did not issue it. */
  async verify(token: string): Promise<ReplayId | undefined> {
    try {
      const { payload } = await jwtVerify(token, this.#key, { algorithms: [algorithm], audience })
      return payload.sub !== undefined && idPattern.test(payload.sub) ? (payload.sub as ReplayId) : undefined
    } catch {
      return undefined // Forged, damaged and foreign tokens are treated alike.
    }
  }
}
