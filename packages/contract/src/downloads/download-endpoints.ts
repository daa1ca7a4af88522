import { z } from 'zod'
import { IdOrName } from '../common/ids.ts'
import { Timestamp } from '../common/time.ts'
import { defineEndpoint } from '../endpoint.ts'

const tag = 'Browser Downloads'
const OneBrowser = z.object({ id_or_name: IdOrName })

/** A file name, and no path. */
const FileName = z.string().regex(/^(?!\.{1,2}$)[^/\0]{1,255}$/, { error: 'must be the name of a file' })

export const BrowserDownload = z
  .object({
    name: z.string(),
    size_bytes: z.int(),
    downloaded_at: Timestamp,
    expires_at: Timestamp.optional().meta({ description: 'Set for a kept file: when it is removed.' }),
  })
  .meta({ id: 'BrowserDownload' })
export type BrowserDownload = z.infer<typeof BrowserDownload>

export const listDownloads = defineEndpoint({
  operationId: 'listDownloads',
  method: 'GET',
  path: '/browsers/{id_or_name}/downloads',
  summary: 'List the files that pages have downloaded',
  description:
    'Finished downloads in the default download folder, sorted by name. After the end of a session with keep_downloads, ' +
    'the kept files; the session is then found by its id.',
  tag,
  access: 'project',
  params: OneBrowser,
  reply: z.array(BrowserDownload),
  status: 200,
  errors: ['session_not_found', 'session_unreachable'],
})

export const getDownload = defineEndpoint({
  operationId: 'getDownload',
  method: 'GET',
  path: '/browsers/{id_or_name}/downloads/{name}',
  summary: 'Get a file that a page has downloaded',
  description: 'Supports one byte range (`Range`).',
  tag,
  access: 'project',
  params: OneBrowser.extend({ name: FileName }),
  replyType: 'application/octet-stream',
  status: 200,
  otherSuccesses: { 206: 'The requested range.' },
  errors: ['session_not_found', 'session_unreachable', 'file_not_found', 'range_not_satisfiable'],
})
