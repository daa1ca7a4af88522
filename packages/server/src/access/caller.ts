import type { ApiKeyId, AuthConnectionId, OrganizationId, ProjectId } from '@berth/contract/common/ids.ts'
import type { OAuthScope } from './oauth/oauth-scopes.ts'

/** An access token of the operator's issuer. Its scopes limit what the caller may do. */
export interface TokenOfIssuer {
  readonly subject: string
  /** Empty when the token contains no address. */
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
  /** Absent for an API key. For a token, `keyId` is `oauth:` and the subject, which is no id of a key. */
  readonly token?: TokenOfIssuer
}

/** The project and key of a request. They limit what the request may see. */
export interface Caller extends OrganizationCaller {
  readonly projectId: ProjectId
  /** Set for the bearer of a hand-off token, who has no key and can access only this connection. */
  readonly handoffConnectionId?: AuthConnectionId
}
