import { z } from 'zod'
import { IdOrName } from '../common/ids.ts'
import { PageQuery } from '../common/page.ts'
import { defineEndpoint } from '../endpoint.ts'
import { Extension, ExtensionName, maxExtensionsOfSession } from './extension.ts'

const tag = 'Extensions'
const OneExtension = z.object({ id_or_name: IdOrName.meta({ description: 'Extension id or name.' }) })
const Zip = z.unknown().meta({ override: { type: 'string', format: 'binary' } })

export const uploadExtension = defineEndpoint({
  operationId: 'uploadExtension',
  method: 'POST',
  path: '/extensions',
  summary: 'Upload an extension',
  description: 'A zip archive with manifest.json at its root, or inside one top-level folder; at most 50 MiB.',
  tag,
  access: 'project',
  body: z.object({ file: Zip, name: ExtensionName.optional() }),
  bodyType: 'multipart/form-data',
  reply: Extension,
  status: 201,
  errors: ['part_too_large', 'archive_refused', 'extension_name_taken'],
})

export const listExtensions = defineEndpoint({
  operationId: 'listExtensions',
  method: 'GET',
  path: '/extensions',
  summary: 'List extensions',
  description: 'Newest first.',
  tag,
  access: 'project',
  query: PageQuery.extend({
    query: z.string().max(1024).optional().meta({ description: 'Text to find in the name, or the whole id.' }),
    name: z.string().max(255).optional().meta({ description: 'The whole name. Case and accents are ignored.' }),
  }),
  reply: z.array(Extension),
  paged: true,
  status: 200,
  errors: [],
})

/** Listed before the endpoint with an id or name, which would match this path too. */
export const downloadFromChromeStore = defineEndpoint({
  operationId: 'downloadExtensionFromChromeStore',
  method: 'GET',
  path: '/extensions/from_chrome_store',
  summary: 'Fetch an extension from the Chrome Web Store',
  description: 'Returns the archive of the unpacked extension. Nothing is stored.',
  tag,
  access: 'project',
  query: z.object({
    url: z.string().max(2048).meta({ description: "The extension's page in the Chrome Web Store." }),
    os: z.enum(['win', 'mac', 'linux']).default('linux'),
  }),
  replyType: 'application/octet-stream',
  status: 200,
  errors: ['chrome_store_refused'],
})

export const downloadExtension = defineEndpoint({
  operationId: 'downloadExtension',
  method: 'GET',
  path: '/extensions/{id_or_name}',
  summary: 'Download an extension',
  description: 'Returns the archive, byte for byte as it was uploaded.',
  tag,
  access: 'project',
  params: OneExtension,
  replyType: 'application/octet-stream',
  status: 200,
  errors: ['extension_not_found'],
})

export const getExtension = defineEndpoint({
  operationId: 'getExtension',
  method: 'GET',
  path: '/extensions/{id_or_name}/metadata',
  summary: 'Get an extension',
  tag,
  access: 'project',
  params: OneExtension,
  reply: Extension,
  status: 200,
  errors: ['extension_not_found'],
})

export const deleteExtension = defineEndpoint({
  operationId: 'deleteExtension',
  method: 'DELETE',
  path: '/extensions/{id_or_name}',
  summary: 'Delete an extension',
  description: 'Sessions that have loaded it keep it.',
  tag,
  access: 'project',
  params: OneExtension,
  status: 204,
  errors: ['extension_not_found'],
})

export const loadExtensions = defineEndpoint({
  operationId: 'loadExtensions',
  method: 'POST',
  path: '/browsers/{id_or_name}/extensions',
  summary: 'Load extensions into a running browser',
  description:
    'Loads all extensions or none. The browser and its connections continue, unless an extension needs a policy: ' +
    'then the browser is restarted.',
  tag: 'Browsers',
  access: 'project',
  params: z.object({ id_or_name: IdOrName }),
  body: z.object({
    extensions: z
      .array(z.object({ name: ExtensionName, zip_file: Zip }))
      .min(1)
      .max(maxExtensionsOfSession),
  }),
  bodyType: 'multipart/form-data',
  status: 201,
  errors: [
    'session_not_found',
    'session_unreachable',
    'operation_interrupted',
    'part_too_large',
    'archive_refused',
    'extension_not_loadable',
  ],
})
