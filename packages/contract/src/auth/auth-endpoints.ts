import { z } from 'zod'
import { defineEndpoint } from '../endpoint.ts'

const ProjectScope = (description: string) => z.object({ project_id: z.string().nullable().meta({ description }) })

export const AuthContext = z
  .object({
    principal: z.object({ type: z.enum(['api_key', 'user']), id: z.string() }),
    organization: z.object({ id: z.string() }),
    authentication: z.object({
      method: z.enum(['api_key', 'jwt']),
      source: z.enum(['api_key', 'oauth', 'dashboard']),
      credential_id: z.string().nullable(),
    }),
    authorization: z.object({
      credential_scope: ProjectScope('Null: the key acts for the whole organization.'),
      effective_scope: ProjectScope('The project that this request has chosen, or that of the key. Null: neither.'),
    }),
  })
  .meta({ id: 'AuthContext' })
export type AuthContext = z.infer<typeof AuthContext>

export const getAuthContext = defineEndpoint({
  operationId: 'getAuthContext',
  method: 'GET',
  path: '/auth/context',
  summary: 'Get the caller and the scope of its key',
  tag: 'Authentication',
  access: 'organization',
  reply: AuthContext,
  status: 200,
  errors: [],
})
