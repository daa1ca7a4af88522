import type { ApiKeyId, OrganizationId, ProjectId } from '@berth/contract/common/ids.ts'

/** Whose key stands behind a request, and the project that the request has chosen, if any. */
export interface OrganizationCaller {
  readonly keyId: ApiKeyId
  readonly keyName: string
  readonly organizationId: OrganizationId
  /** The one project that the key is for; null when it is for the whole organization. */
  readonly keyProjectId: ProjectId | null
  /** The project that the headers name, or the key's own; null when there is neither. */
  readonly chosenProjectId: ProjectId | null
  /** Where requests work that choose none; null when it is archived or deleted. */
  readonly defaultProjectId: ProjectId | null
}

/** The project and key behind a request: the border of what it may see. */
export interface Caller extends OrganizationCaller {
  readonly projectId: ProjectId
}
