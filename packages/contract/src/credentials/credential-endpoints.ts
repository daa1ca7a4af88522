import { z } from 'zod'
import { PageQuery } from '../common/page.ts'
import { SearchText } from '../common/text.ts'
import { Timestamp } from '../common/time.ts'
import { defineEndpoint } from '../endpoint.ts'
import { Credential, CredentialCreateRequest, CredentialUpdateRequest } from './credential.ts'

const tag = 'Credentials'
const OneCredential = z.object({
  id_or_name: z.string().min(1).max(255).meta({ description: 'Credential id or name. Ids are looked up first.' }),
})

export const createCredential = defineEndpoint({
  operationId: 'createCredential',
  method: 'POST',
  path: '/credentials',
  summary: 'Create a credential',
  tag,
  access: 'project',
  body: CredentialCreateRequest,
  reply: Credential,
  status: 201,
  errors: ['credential_name_taken'],
})

export const listCredentials = defineEndpoint({
  operationId: 'listCredentials',
  method: 'GET',
  path: '/credentials',
  summary: 'List credentials',
  description: 'Newest first.',
  tag,
  access: 'project',
  query: PageQuery.extend({
    domain: SearchText.optional().meta({ description: 'The whole domain.' }),
    query: SearchText.optional().meta({ description: 'Text to find in the name or the domain, or a whole id.' }),
  }),
  reply: z.array(Credential),
  paged: true,
  status: 200,
  errors: [],
})

export const getCredential = defineEndpoint({
  operationId: 'getCredential',
  method: 'GET',
  path: '/credentials/{id_or_name}',
  summary: 'Get a credential',
  tag,
  access: 'project',
  params: OneCredential,
  reply: Credential,
  status: 200,
  errors: ['credential_not_found'],
})

export const updateCredential = defineEndpoint({
  operationId: 'updateCredential',
  method: 'PATCH',
  path: '/credentials/{id_or_name}',
  summary: 'Change a credential',
  description: 'Absent fields stay unchanged. The domain cannot change.',
  tag,
  access: 'project',
  params: OneCredential,
  body: CredentialUpdateRequest,
  reply: Credential,
  status: 200,
  errors: ['credential_not_found', 'credential_name_taken'],
})

export const deleteCredential = defineEndpoint({
  operationId: 'deleteCredential',
  method: 'DELETE',
  path: '/credentials/{id_or_name}',
  summary: 'Delete a credential',
  tag,
  access: 'project',
  params: OneCredential,
  status: 204,
  errors: ['credential_not_found'],
})

export const getTotpCode = defineEndpoint({
  operationId: 'getTotpCode',
  method: 'GET',
  path: '/credentials/{id_or_name}/totp-code',
  summary: 'Get the current one-time code',
  tag,
  access: 'project',
  params: OneCredential,
  reply: z.object({ code: z.string(), expires_at: Timestamp }),
  status: 200,
  errors: ['credential_not_found', 'totp_secret_not_found'],
})
