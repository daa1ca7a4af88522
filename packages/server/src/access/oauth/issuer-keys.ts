import type { Clock } from '@berth/runtime/async/clock.ts'
import { LoadingCache } from '@berth/runtime/async/loading-cache.ts'
import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey } from 'jose'
import { z } from 'zod'
import { guardedGet } from '../../outbound/guarded-get.ts'
import type { OutboundGuard } from '../../outbound/outbound-guard.ts'

const limitMilliseconds = 5_000
const maxBytes = 256 * 1024
const freshMilliseconds = 10 * 60 * 1000
/** Tokens with unknown keys make berth request the keys again, but not more often than this. */
const cooldownMilliseconds = 5_000

const Metadata = z.object({ issuer: z.string(), jwks_uri: z.url({ protocol: /^https?$/ }) })

/** The issuer's keys are not available, so a token can be neither accepted nor rejected. */
export class IssuerUnavailable extends Error {}

/** The signing keys of an issuer. Finds them by the issuer's metadata and connects through the guard. */
export class IssuerKeys {
  readonly #issuer: string
  readonly #guard: OutboundGuard
  readonly #sets: LoadingCache<string, JWTVerifyGetKey>

  constructor(issuer: string, guard: OutboundGuard, clock: Clock) {
    this.#issuer = issuer
    this.#guard = guard
    this.#sets = new LoadingCache({ maxEntries: 1, fresh: { milliseconds: freshMilliseconds, clock } })
  }

  readonly find: JWTVerifyGetKey = async (header, token) => {
    const set = await this.#sets.get(this.#issuer, () => this.#open())
    return set(header, token)
  }

  async #open(): Promise<JWTVerifyGetKey> {
    const address = await this.#findKeySet()
    return createRemoteJWKSet(new URL(address), {
      timeoutDuration: limitMilliseconds,
      cooldownDuration: cooldownMilliseconds,
      cacheMaxAge: freshMilliseconds,
      [customFetch]: async (url) => {
        const { status, text } = await this.#get(url)
        return new Response(text, { status })
      },
    })
  }

  /** OpenID Connect appends the well-known path to the path of the issuer. OAuth (RFC 8414) inserts it before. */
  async #findKeySet(): Promise<string> {
    const { origin, pathname } = new URL(this.#issuer)
    const path = pathname.replace(/\/$/, '')
    const addresses = [
      `${origin}${path}/.well-known/openid-configuration`,
      `${origin}/.well-known/oauth-authorization-server${path}`,
    ]
    for (const address of addresses) {
      const { status, text } = await this.#get(address)
      if (status !== 200) continue
      const metadata = Metadata.safeParse(parsed(text))
      if (metadata.data?.issuer === this.#issuer) return metadata.data.jwks_uri
      throw new IssuerUnavailable(`${address} is not the metadata of ${this.#issuer}`)
    }
    throw new IssuerUnavailable(`${this.#issuer} has no metadata at ${addresses.join(' or ')}`)
  }

  async #get(address: string) {
    try {
      return await guardedGet(address, { guard: this.#guard, limitMilliseconds, maxBytes })
    } catch (cause) {
      throw new IssuerUnavailable(`${address} does not respond: ${(cause as Error).message}`, { cause })
    }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
