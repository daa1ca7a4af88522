import { idPattern, type OrganizationId } from '@berth/contract/common/ids.ts'
import { StartError } from '../../start-error.ts'

/** How tokens of the operator's issuer are accepted in addition to API keys. */
export interface OAuthConfig {
  /** Must equal the claim `iss`. */
  readonly issuer: string
  /** Must be contained in the claim `aud`. */
  readonly audience: string
  /** The organization of every token, or the claim that contains it. */
  readonly organization: { readonly id: OrganizationId } | { readonly claim: string }
  /** The claim that restricts a token to a project. When absent, tokens are valid for the whole organization. */
  readonly projectClaim: string | undefined
}

const others = ['AUDIENCE', 'ORGANIZATION', 'ORGANIZATION_CLAIM', 'PROJECT_CLAIM'].map((name) => `BERTH_OAUTH_${name}`)

/** Undefined when OAuth is disabled. */
export function readOAuthConfig(
  text: (name: string) => string | undefined,
  publicUrl: string | undefined,
): OAuthConfig | undefined {
  const issuer = text('BERTH_OAUTH_ISSUER')
  if (issuer === undefined) {
    const useless = others.find((name) => text(name) !== undefined)
    if (useless) throw new StartError(`${useless} has no effect without BERTH_OAUTH_ISSUER`, 64)
    return undefined
  }
  const audience = text('BERTH_OAUTH_AUDIENCE') ?? (publicUrl && `${publicUrl}/mcp`)
  if (!audience) throw new StartError('BERTH_OAUTH_ISSUER needs BERTH_PUBLIC_URL or BERTH_OAUTH_AUDIENCE', 64)
  return {
    issuer: issuerAddress(issuer),
    audience,
    organization: organizationOf(text('BERTH_OAUTH_ORGANIZATION'), text('BERTH_OAUTH_ORGANIZATION_CLAIM')),
    projectClaim: text('BERTH_OAUTH_PROJECT_CLAIM'),
  }
}

function issuerAddress(text: string): string {
  const url = URL.parse(text)
  const isAddress = url && ['http:', 'https:'].includes(url.protocol)
  if (isAddress && !url.search && !url.hash && !url.username && !url.password) return text
  throw new StartError('BERTH_OAUTH_ISSUER must be an http or https address without query or credentials', 64)
}

function organizationOf(id: string | undefined, claim: string | undefined): OAuthConfig['organization'] {
  if ((id === undefined) === (claim === undefined)) {
    throw new StartError('BERTH_OAUTH_ISSUER needs BERTH_OAUTH_ORGANIZATION or BERTH_OAUTH_ORGANIZATION_CLAIM', 64)
  }
  if (claim !== undefined) return { claim }
  if (id !== undefined && idPattern.test(id)) return { id: id as OrganizationId }
  throw new StartError('BERTH_OAUTH_ORGANIZATION must be the id of an organization: see berth org list', 64)
}
