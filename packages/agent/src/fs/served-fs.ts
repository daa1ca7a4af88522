import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { getFileInfo } from '@berth/contract/agent/fs-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { type ServedOperation, serve } from '../operations/served-operation.ts'
import { modeText } from './mode-text.ts'

/** The filesystem of the session, as the session's own user may see and change it. */
export function servedFs(): readonly ServedOperation[] {
  return [
    serve(getFileInfo, async ({ query: { path } }) => {
      const found = await stat(path).catch((cause: NodeJS.ErrnoException) => {
        if (cause.code === 'ENOENT' || cause.code === 'ENOTDIR')
          throw new BerthError('file_not_found', { path }, { cause })
        throw cause
      })
      return {
        name: basename(path),
        path,
        size_bytes: found.isDirectory() ? 0 : found.size,
        is_dir: found.isDirectory(),
        mod_time: found.mtime.toISOString(),
        mode: modeText(found.mode),
      }
    }),
  ]
}
