import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { deriveKey } from '../../access/secrets.ts'

/** Stands in requests that one server passes on to another. */
export const forwardedHeader = 'x-berth-forwarded'

/** Also the difference that the clocks of two servers may have. */
const validMilliseconds = 60_000

/** What a server says of a request that it passes on. */
export interface ForwardedFacts {
  readonly from: string
  readonly to: string
  /** The address of the client. */
  readonly client: string
  readonly signedAt: number
}

interface SignedRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
}

/**
 * Signs the requests that servers pass on to each other, with a key that they derive from their common master key. A
 * signature is for one server, one method and one URL, and for a minute.
 */
export class PeerSignature {
  readonly #key: Uint8Array
  readonly #clock: Clock
  /** The same for two servers exactly when their master keys are, and of no other use. */
  readonly keyCheck: string

  constructor(masterKey: string, clock: Clock) {
    this.#clock = clock
    this.#key = deriveKey(masterKey, 'requests between servers')
    this.keyCheck = createHmac('sha256', deriveKey(masterKey, 'comparison of master keys')).digest('hex')
  }

  /** The value of the header. */
  sign(facts: Omit<ForwardedFacts, 'signedAt'>, request: SignedRequest): string {
    const text = Buffer.from(JSON.stringify({ ...facts, signedAt: this.#clock.now().getTime() })).toString('base64url')
    return `${text}.${this.#mac(text, request).toString('base64url')}`
  }

  /** What a server with the same master key has said of this very request; nothing when none has. */
  verify(value: string, request: SignedRequest): ForwardedFacts | undefined {
    const [text = '', mac = ''] = value.split('.')
    const expected = this.#mac(text, request)
    const given = Buffer.from(mac, 'base64url')
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined
    return JSON.parse(Buffer.from(text, 'base64url').toString()) as ForwardedFacts
  }

  isFresh({ signedAt }: ForwardedFacts): boolean {
    return Math.abs(this.#clock.now().getTime() - signedAt) <= validMilliseconds
  }

  #mac(text: string, { method = '', url = '' }: SignedRequest): Buffer {
    return createHmac('sha256', this.#key).update(`${text}\n${method}\n${url}`).digest()
  }
}
