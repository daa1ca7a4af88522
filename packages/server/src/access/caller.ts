import type { ApiKeyId, AuthConnectionId, OrganizationId, ProjectId } from '@berth/contract/common/ids.ts'
import type { OAuthScope } from './oauth/oauth-scopes.ts'

/** An access token of the operator's issuer, by which a caller may do what its scopes say. */
export interface TokenOfIssuer {
  readonly subject: string
  /** Empty when the issuer names none. */
  readonly email: string
  readonly scopes: ReadonlySet<OAuthScope>
}

/** The key of a request, and the project that the request selects, if any. */
export interface OrganizationCaller {
  readonly keyId: ApiKeyId
  readonly keyName: string
  readonly organizationId: OrganizationId
  /** The project that the key is restricted to. Null when it is valid for the whole organization. */
  readonly keyProjectId: ProjectId | null
  /** The project from the headers or of the key. Null when there is neither. */
  readonly chosenProjectId: ProjectId | null
  /** The project of requests that select none. Null when it is archived or deleted. */
  readonly defaultProjectId: ProjectId | null
  /** Absent for an API key. With a token, `keyId` is `oauth:` and its subject, and no key has it. */
  readonly token?: TokenOfIssuer
}

/** The project and key of a request. They limit what the request may see. */
export interface Caller extends OrganizationCaller {
  readonly projectId: ProjectId
  /** Set for the bearer of a hand-off token, who has no key and sees this connection alone. */
  readonly handoffConnectionId?: AuthConnectionId
}
