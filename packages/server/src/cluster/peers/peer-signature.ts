import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { deriveKey } from '../../access/secrets.ts'

/** The header of requests that one server forwards to another. */
export const forwardedHeader = 'x-berth-forwarded'

/** Also the permitted difference between the clocks of two servers. */
const validMilliseconds = 60_000

/** What a server states about a request that it forwards. */
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
 * Signs the requests that servers forward to each other, with a key derived from their common master key. A signature
 * is valid for one server, one method and one URL, for one minute.
 */
export class PeerSignature {
  readonly #key: Uint8Array
  readonly #clock: Clock
  /** Equal on two servers exactly if their master keys are equal. Has no other use. */
  readonly keyCheck: string

  constructor(masterKey: string, clock: Clock) {
    this.#clock = clock
    this.#key = deriveKey(masterKey, 'requests between servers')
    this.keyCheck = createHmac('sha256', deriveKey(masterKey, 'comparison of master keys')).digest('hex')
  }

  /** Returns the value of the header. */
  sign(facts: Omit<ForwardedFacts, 'signedAt'>, request: SignedRequest): string {
    const text = Buffer.from(JSON.stringify({ ...facts, signedAt: this.#clock.now().getTime() })).toString('base64url')
    return `${text}.${this.#mac(text, request).toString('base64url')}`
  }

  /** Returns what a server with the same master key states about this request. Undefined if the value is invalid. */
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
