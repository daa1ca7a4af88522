import { type ApiKeyId, idPattern, type OrganizationId, type ProjectId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { decodeJwt, errors, type JWTPayload, jwtVerify } from 'jose'
import type { KeyScope } from '../../features/organizations/organization-store.ts'
import type { OutboundGuard } from '../../outbound/outbound-guard.ts'
import type { ApiKeyCache } from '../api-key-cache.ts'
import type { TokenOfIssuer } from '../caller.ts'
import { IssuerKeys, IssuerUnavailable } from './issuer-keys.ts'
import type { OAuthConfig } from './oauth-config.ts'
import { type OAuthScope, oauthScopes } from './oauth-scopes.ts'

/** Asymmetric algorithms only: berth shares no secret with the issuer. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']
const toleranceSeconds = 5
/** The base64url parts of a token. API keys contain no dots. */
const tokenForm = /^[\w-]+\.[\w-]+\.[\w-]*$/
const subjectForm = /^[\x20-\x7e]{1,255}$/

interface OAuthTokensOptions {
  readonly config: OAuthConfig
  readonly keys: ApiKeyCache
  readonly guard: OutboundGuard
  readonly clock: Clock
  readonly logger: Logger
}

/** Verifies access tokens of the operator's issuer (RFC 9068) and determines their organization and project. */
export class OAuthTokens {
  readonly #options: OAuthTokensOptions
  readonly #issuerKeys: IssuerKeys

  constructor(options: OAuthTokensOptions) {
    const { config, guard, clock } = options
    this.#options = options
    this.#issuerKeys = new IssuerKeys(config.issuer, guard, clock)
  }

  get issuer(): string {
    return this.#options.config.issuer
  }

  static isToken(bearer: string): boolean {
    return tokenForm.test(bearer)
  }

  /** Whether the token names the issuer. Nothing is verified. */
  isOfIssuer(bearer: string | undefined): boolean {
    try {
      return bearer !== undefined && OAuthTokens.isToken(bearer) && decodeJwt(bearer).iss === this.issuer
    } catch {
      return false
    }
  }

  async verify(token: string): Promise<KeyScope & { readonly token: TokenOfIssuer }> {
    const payload = await this.#verified(token)
    const { sub = '', email } = payload
    if (!subjectForm.test(sub)) throw refusal('its subject (sub) must have 1 to 255 visible ASCII characters')
    const { organizationId, projectId } = this.#scopeOf(payload)
    const owner = await this.#options.keys.findOwner(organizationId, projectId)
    if (!owner) throw refusal('it names an organization that does not exist')
    return {
      ...owner,
      // Not an id of a key: those contain neither capitals nor colons.
      keyId: `oauth:${sub}` as ApiKeyId,
      keyName: sub,
      expiresAt: null,
      organizationId,
      projectId,
      token: { subject: sub, email: textOf(email), scopes: scopesOf(payload) },
    }
  }

  async #verified(token: string): Promise<JWTPayload> {
    const { config, clock, logger } = this.#options
    const { issuer, audience } = config
    try {
      // Checked before the keys are requested, so that foreign tokens cause no requests to the issuer.
      if (decodeJwt(token).iss !== issuer) throw refusal('it was issued by another issuer')
      const { payload } = await jwtVerify(token, this.#issuerKeys.find, {
        ...{ issuer, audience, algorithms, requiredClaims: ['exp', 'sub'] },
        clockTolerance: toleranceSeconds,
        currentDate: clock.now(),
      })
      return payload
    } catch (error) {
      if (error instanceof BerthError) throw error
      if (error instanceof IssuerUnavailable || error instanceof errors.JWKSTimeout) {
        logger.warn({ err: error }, 'the keys of the OAuth issuer cannot be read')
        throw new BerthError('oauth_issuer_unavailable', undefined, { cause: error })
      }
      throw refusal(reasonOf(error))
    }
  }

  #scopeOf(payload: JWTPayload): { readonly organizationId: OrganizationId; readonly projectId: ProjectId | null } {
    const { organization, projectClaim } = this.#options.config
    return {
      organizationId: 'id' in organization ? organization.id : (idIn(payload, organization.claim) as OrganizationId),
      projectId: projectClaim === undefined ? null : (idIn(payload, projectClaim) as ProjectId),
    }
  }
}

/** A token without the claim is rejected. */
function idIn(payload: JWTPayload, claim: string): string {
  const value = Object.hasOwn(payload, claim) ? payload[claim] : undefined
  if (typeof value === 'string' && idPattern.test(value)) return value
  throw refusal(`its claim ${claim} must be an id`)
}

/** Some issuers use `scp`. */
function scopesOf({ scope, scp }: JWTPayload): ReadonlySet<OAuthScope> {
  const given = scope ?? scp
  const names = typeof given === 'string' ? given.split(' ') : Array.isArray(given) ? given : []
  return new Set(oauthScopes.filter((each) => names.includes(each)))
}

function textOf(value: unknown): string {
  return typeof value === 'string' && subjectForm.test(value) ? value : ''
}

function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) return 'it has expired'
  if (error instanceof errors.JWTClaimValidationFailed) return `its claim ${error.claim} is not the expected one`
  if (error instanceof errors.JOSEAlgNotAllowed) return 'its algorithm (alg) is not accepted'
  return 'it is not signed by the issuer'
}

function refusal(reason: string): BerthError {
  return new BerthError('unauthorized', { reason: `The access token is not valid: ${reason}.` })
}
