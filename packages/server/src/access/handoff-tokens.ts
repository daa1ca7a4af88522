import { type AuthConnectionId, type AuthFlowId, idPattern } from '@berth/contract/common/ids.ts'
import { jwtVerify, SignJWT } from 'jose'
import { deriveKey } from './secrets.ts'

const algorithm = 'HS256'
const audience = 'managed auth'
const lifeSeconds = 30 * 60
/** The base64url parts of a token. API keys contain no dots. */
const tokenForm = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** What a token gives access to: one flow of one connection. */
export interface HandoffSubject {
  readonly connectionId: AuthConnectionId
  readonly flowId: AuthFlowId
}

/** Issues and verifies the tokens with which a person without a key completes a login. */
export class HandoffTokens {
  readonly #key: Uint8Array

  constructor(masterKey: string) {
    this.#key = deriveKey(masterKey, 'hand-off tokens')
  }

  issue({ connectionId, flowId }: HandoffSubject, now: Date): Promise<string> {
    const seconds = Math.floor(now.getTime() / 1000)
    return new SignJWT({ invocation_id: flowId })
      .setProtectedHeader({ alg: algorithm, typ: 'JWT' })
      .setSubject(connectionId)
      .setAudience(audience)
      .setIssuedAt(seconds)
      .setExpirationTime(seconds + lifeSeconds)
      .sign(this.#key)
  }

  /** Undefined if berth did not issue the token, or it has expired. */
  async verify(token: string, now: Date): Promise<HandoffSubject | undefined> {
    if (!tokenForm.test(token)) return undefined
    try {
      const { payload } = await jwtVerify(token, this.#key, { algorithms: [algorithm], audience, currentDate: now })
      const { sub = '', invocation_id: flowId } = payload
      if (!idPattern.test(sub) || typeof flowId !== 'string') return undefined
      return { connectionId: sub as AuthConnectionId, flowId: flowId as AuthFlowId }
    } catch {
      return undefined // Forged, damaged and foreign tokens are treated alike.
    }
  }

  /** Whether the text has the form of such a token. */
  static isToken(bearer: string | undefined): bearer is string {
    return bearer !== undefined && tokenForm.test(bearer)
  }
}
