import { randomBytes } from 'node:crypto'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import { LRUCache } from 'lru-cache'
import type { ApiKeyCache } from '../../access/api-key-cache.ts'
import { hashApiKey } from '../../access/secrets.ts'
import type { SignInStore } from './sign-in-store.ts'

const sessionSeconds = 7 * 24 * 60 * 60
const linkSeconds = 24 * 60 * 60
const secretBytes = 32

const maxFailures = 10
const failureMilliseconds = 60_000
const maxAddresses = 10_000

interface SignInServiceOptions {
  readonly store: SignInStore
  readonly keys: ApiKeyCache
  readonly clock: Clock
}

type SignInCredential = { readonly apiKey: string } | { readonly code: string }

/** A new session of the dashboard. This is the only time when its token is available. */
export interface SignedIn {
  readonly token: string
  readonly seconds: number
  readonly scope: NonNullable<Awaited<ReturnType<ApiKeyCache['find']>>>
}

/** Sessions of the dashboard. Each has exactly the rights of the API key that it was created with, and ends with it. */
export class SignInService {
  readonly #options: SignInServiceOptions
  /** The times of failed attempts of each address within the last minute. */
  readonly #failures = new LRUCache<string, readonly number[]>({ max: maxAddresses })

  constructor(options: SignInServiceOptions) {
    this.#options = options
  }

  async signIn(credential: SignInCredential, address: string): Promise<SignedIn> {
    const { store, keys, clock } = this.#options
    const now = clock.now()
    this.#requirePatience(address, now)
    const token = randomBytes(secretBytes).toString('base64url')
    const expiresAt = new Date(now.getTime() + sessionSeconds * 1000)
    const known = 'apiKey' in credential ? (await keys.find(hashApiKey(credential.apiKey)))?.keyId : undefined
    const keyId = 'code' in credential ? await store.takeLink(hashApiKey(credential.code), now) : known
    if (keyId) await store.add({ tokenHash: hashApiKey(token), keyId, now, expiresAt })
    // Looked up by the token, so that an expired key cannot sign in, whichever way it was sent.
    const scope = keyId && (await keys.find(hashApiKey(token)))
    if (!scope) throw this.#refuse(credential, address, now)
    return { token, seconds: sessionSeconds, scope }
  }

  async signOut(token: string): Promise<void> {
    const { store, keys } = this.#options
    await store.remove(hashApiKey(token))
    keys.clear()
  }

  /** Creates the code of a link that signs in once with the rights of the key. */
  async createLink(apiKey: string): Promise<string | undefined> {
    const { store, keys, clock } = this.#options
    const scope = await keys.find(hashApiKey(apiKey))
    if (!scope) return undefined
    const code = randomBytes(secretBytes).toString('base64url')
    const expiresAt = new Date(clock.now().getTime() + linkSeconds * 1000)
    await store.addLink({ codeHash: hashApiKey(code), keyId: scope.keyId, expiresAt })
    return code
  }

  #requirePatience(address: string, now: Date): void {
    const recent = (this.#failures.get(address) ?? []).filter((at) => at > now.getTime() - failureMilliseconds)
    if (recent.length >= maxFailures) throw new BerthError('too_many_sign_ins')
  }

  #refuse(credential: SignInCredential, address: string, now: Date): BerthError {
    this.#failures.set(address, [...(this.#failures.get(address) ?? []), now.getTime()].slice(-maxFailures))
    const reason =
      'code' in credential
        ? 'code: the link was used before, or it has expired. Sign in with an API key.'
        : 'api_key: is not a valid API key.'
    return new BerthError('unauthorized', { reason })
  }
}
