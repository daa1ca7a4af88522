import { z } from 'zod'
import { defineStream } from '../../stream.ts'
import { defineOperation } from '../operation.ts'
import { AbsolutePath, FileInfo, FileMode, FsEvent } from './fs-types.ts'

const tag = 'Browser Filesystem'
const category = 'platform'

const Binary = z.unknown().meta({ override: { type: 'string', format: 'binary' } })
const PathQuery = z.object({ path: AbsolutePath })
const PathBody = z.strictObject({ path: AbsolutePath })
const WatchParams = z.object({ watch_id: z.string().min(1) })

export const readFile = defineOperation({
  operationId: 'readFile',
  method: 'GET',
  path: '/fs/read_file',
  summary: 'Read a file',
  description: 'Supports one byte range (`Range`, `If-Range`) and conditions (`If-None-Match`, `If-Modified-Since`).',
  tag,
  category,
  query: PathQuery,
  replyType: 'application/octet-stream',
  status: 200,
  otherSuccesses: { 206: 'The requested range.', 304: 'The caller’s copy is current.' },
  errors: ['file_not_found', 'range_not_satisfiable'],
})

export const writeFile = defineOperation({
  operationId: 'writeFile',
  method: 'PUT',
  path: '/fs/write_file',
  summary: 'Write a file',
  description: 'The file is replaced atomically after the last byte.',
  tag,
  category,
  query: PathQuery.extend({
    mode: FileMode.optional().meta({ description: 'Default: the mode of an existing file, and 644 for a new one.' }),
  }),
  body: Binary,
  bodyType: 'application/octet-stream',
  status: 201,
  errors: ['file_not_found', 'disk_full'],
})

export const listFiles = defineOperation({
  operationId: 'listFiles',
  method: 'GET',
  path: '/fs/list_files',
  summary: 'List a directory',
  description: 'Sorted by name. Symbolic links are reported as links.',
  tag,
  category,
  query: PathQuery,
  reply: z.array(FileInfo),
  status: 200,
  errors: ['file_not_found'],
})

export const getFileInfo = defineOperation({
  operationId: 'getFileInfo',
  method: 'GET',
  path: '/fs/file_info',
  summary: 'Describe a file or directory',
  description: 'For a symbolic link, describes its target, or the link itself if that does not exist.',
  tag,
  category,
  query: PathQuery,
  reply: FileInfo,
  status: 200,
  errors: ['file_not_found'],
})

export const createDirectory = defineOperation({
  operationId: 'createDirectory',
  method: 'PUT',
  path: '/fs/create_directory',
  summary: 'Create a directory and its parents',
  tag,
  category,
  body: PathBody.extend({ mode: FileMode.default('755') }),
  status: 201,
  errors: ['file_not_found', 'disk_full'],
})

export const deleteFile = defineOperation({
  operationId: 'deleteFile',
  method: 'PUT',
  path: '/fs/delete_file',
  summary: 'Delete a file',
  description: 'For a symbolic link, deletes the link.',
  tag,
  category,
  body: PathBody,
  status: 200,
  errors: ['file_not_found'],
})

export const deleteDirectory = defineOperation({
  operationId: 'deleteDirectory',
  method: 'PUT',
  path: '/fs/delete_directory',
  summary: 'Delete a directory and its content',
  description: 'Succeeds for a directory that does not exist.',
  tag,
  category,
  body: PathBody,
  status: 200,
  errors: ['file_not_found'],
})

export const setFilePermissions = defineOperation({
  operationId: 'setFilePermissions',
  method: 'PUT',
  path: '/fs/set_file_permissions',
  summary: 'Change the permissions and owner of a file or directory',
  description:
    'An owner or group that the user of the session must not assign is left unchanged. A name that does not exist in ' +
    'the session is an error.',
  tag,
  category,
  body: PathBody.extend({
    mode: FileMode,
    owner: z.string().min(1).max(255).optional().meta({ description: 'Name or number of a user.' }),
    group: z.string().min(1).max(255).optional().meta({ description: 'Name or number of a group.' }),
  }),
  status: 200,
  errors: ['file_not_found'],
})

export const movePath = defineOperation({
  operationId: 'movePath',
  method: 'PUT',
  path: '/fs/move',
  summary: 'Rename a file or directory',
  description: 'Replaces an existing file, also on another file system. The parent directory must exist.',
  tag,
  category,
  body: z.strictObject({ src_path: AbsolutePath, dest_path: AbsolutePath }),
  status: 200,
  errors: ['file_not_found', 'disk_full'],
})

export const downloadDirZip = defineOperation({
  operationId: 'downloadDirZip',
  method: 'GET',
  path: '/fs/download_dir_zip',
  summary: 'Download a directory as a zip archive',
  description: 'Symbolic links are included as links. Sockets, pipes and devices are omitted.',
  tag,
  category,
  query: PathQuery,
  replyType: 'application/zip',
  status: 200,
  errors: ['file_not_found'],
})

export const uploadFiles = defineOperation({
  operationId: 'uploadFiles',
  method: 'POST',
  path: '/fs/upload',
  summary: 'Upload files',
  description: 'All files are written, or none.',
  tag,
  category,
  body: z.object({ files: z.array(z.object({ file: Binary, dest_path: AbsolutePath })).min(1) }),
  bodyType: 'multipart/form-data',
  status: 201,
  errors: ['file_not_found', 'part_too_large', 'disk_full'],
})

export const uploadZip = defineOperation({
  operationId: 'uploadZip',
  method: 'POST',
  path: '/fs/upload_zip',
  summary: 'Upload a zip archive and unpack it',
  description: 'Replaces existing files. A rejected archive changes nothing.',
  tag,
  category,
  body: z.object({ zip_file: Binary, dest_path: AbsolutePath }),
  bodyType: 'multipart/form-data',
  status: 201,
  errors: ['file_not_found', 'archive_refused', 'part_too_large', 'disk_full'],
})

export const startFileWatch = defineOperation({
  operationId: 'startFileWatch',
  method: 'POST',
  path: '/fs/watch',
  summary: 'Watch a file or directory for changes',
  tag,
  category,
  body: z.strictObject({ path: AbsolutePath, recursive: z.boolean().default(false) }),
  reply: z.object({ watch_id: z.string() }),
  status: 201,
  errors: ['file_not_found', 'watch_limit_reached'],
})

export const streamFileEvents = defineOperation(
  defineStream({
    operationId: 'streamFileEvents',
    path: '/fs/watch/{watch_id}/events',
    summary: 'Stream the changes of a watch',
    description:
      'Changes are buffered until they are read, each by one reader. When the buffer is full, the newest changes are ' +
      'dropped, and a `WRITE` of the watched path itself reports this.',
    tag,
    category,
    params: WatchParams,
    event: FsEvent,
    errors: ['watch_not_found'],
  }),
)

export const stopFileWatch = defineOperation({
  operationId: 'stopFileWatch',
  method: 'DELETE',
  path: '/fs/watch/{watch_id}',
  summary: 'Stop watching',
  tag,
  category,
  params: WatchParams,
  status: 204,
  errors: ['watch_not_found'],
})

export const fsOperations = [
  readFile,
  writeFile,
  listFiles,
  getFileInfo,
  createDirectory,
  deleteFile,
  deleteDirectory,
  setFilePermissions,
  movePath,
  downloadDirZip,
  uploadFiles,
  uploadZip,
  startFileWatch,
  streamFileEvents,
  stopFileWatch,
] as const
