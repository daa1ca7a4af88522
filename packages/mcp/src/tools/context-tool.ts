import { getAuthContext } from '@berth/contract/auth/auth-endpoints.ts'
import { at, type Tool } from '../tool.ts'

/** Always available: no toolset contains it. */
export const contextTool: Tool = {
  name: 'get_connection_context',
  toolset: undefined,
  help: 'Returns the organization, the scope of the API key, and the project of this connection.',
  isOfProject: false,
  input: {},
  actions: {
    endpoint: at(getAuthContext),
    reply: ({ organization, authorization }) => ({
      organization,
      scope: authorization.credential_scope.project_id === null ? 'organization' : 'project',
      project: authorization.effective_scope.project_id,
    }),
  },
}
