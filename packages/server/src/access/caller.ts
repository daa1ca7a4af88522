import type { ApiKeyId, OrganizationId, ProjectId } from '@berth/contract/common/ids.ts'

/** The project and key behind a request: the border of what it may see. */
export interface Caller {
  readonly keyId: ApiKeyId
  readonly organizationId: OrganizationId
  readonly projectId: ProjectId
}
