import { type AuthContext, getAuthContext } from '@berth/contract/auth/auth-endpoints.ts'
import type { MountForOrganizations } from '../../access/mount-for-callers.ts'

export function mountAuthRoutes(mount: MountForOrganizations): void {
  mount(
    getAuthContext,
    ({ caller }): AuthContext => ({
      principal: caller.token ? { type: 'user', id: caller.token.subject } : { type: 'api_key', id: caller.keyId },
      organization: { id: caller.organizationId },
      authentication: caller.token
        ? { method: 'jwt', source: 'oauth', credential_id: null }
        : { method: 'api_key', source: 'api_key', credential_id: caller.keyId },
      authorization: {
        credential_scope: { project_id: caller.keyProjectId },
        effective_scope: { project_id: caller.chosenProjectId },
      },
    }),
  )
}
