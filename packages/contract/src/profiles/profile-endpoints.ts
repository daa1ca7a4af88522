import { z } from 'zod'
import { IdOrName } from '../common/ids.ts'
import { PageQuery } from '../common/page.ts'
import { defineEndpoint } from '../endpoint.ts'
import { Profile, ProfileName } from './profile.ts'

const tag = 'Profiles'
const OneProfile = z.object({ id_or_name: IdOrName.meta({ description: 'Profile id or name.' }) })

export const createProfile = defineEndpoint({
  operationId: 'createProfile',
  method: 'POST',
  path: '/profiles',
  summary: 'Create an empty profile',
  tag,
  access: 'project',
  body: z.object({ name: ProfileName.nullish() }).prefault({}),
  reply: Profile,
  status: 201,
  errors: ['profile_name_taken'],
})

export const listProfiles = defineEndpoint({
  operationId: 'listProfiles',
  method: 'GET',
  path: '/profiles',
  summary: 'List profiles',
  description: 'Newest first.',
  tag,
  access: 'project',
  query: PageQuery.extend({
    query: z.string().max(1024).optional().meta({ description: 'Text to find in the profile id or name.' }),
    name: z.string().max(1024).optional().meta({ description: 'The whole name. Case and accents are ignored.' }),
  }),
  reply: z.array(Profile),
  paged: true,
  status: 200,
  errors: [],
})

export const getProfile = defineEndpoint({
  operationId: 'getProfile',
  method: 'GET',
  path: '/profiles/{id_or_name}',
  summary: 'Get a profile',
  tag,
  access: 'project',
  params: OneProfile,
  reply: Profile,
  status: 200,
  errors: ['profile_not_found'],
})

export const updateProfile = defineEndpoint({
  operationId: 'updateProfile',
  method: 'PATCH',
  path: '/profiles/{id_or_name}',
  summary: 'Rename a profile',
  tag,
  access: 'project',
  params: OneProfile,
  body: z.object({ name: ProfileName }),
  reply: Profile,
  status: 200,
  errors: ['profile_not_found', 'profile_name_taken'],
})

export const deleteProfile = defineEndpoint({
  operationId: 'deleteProfile',
  method: 'DELETE',
  path: '/profiles/{id_or_name}',
  summary: 'Delete a profile',
  description: 'Sessions that use it continue, and their changes are not saved.',
  tag,
  access: 'project',
  params: OneProfile,
  status: 204,
  errors: ['profile_not_found'],
})

export const downloadProfile = defineEndpoint({
  operationId: 'downloadProfile',
  method: 'GET',
  path: '/profiles/{id_or_name}/download',
  summary: 'Download the saved state of a profile',
  description:
    'A tar archive of the browser’s user data folder. Responds with 202 without a body while nothing is saved.',
  tag,
  access: 'project',
  params: OneProfile,
  query: z.object({
    format: z
      .enum(['tar.zst', 'tar'])
      .default('tar.zst')
      .meta({ description: 'Compressed with Zstandard, as stored, or uncompressed.' }),
  }),
  replyType: 'application/octet-stream',
  status: 200,
  otherSuccesses: { 202: 'Nothing is saved yet; without a body.' },
  errors: ['profile_not_found'],
})
