import type { Stats } from 'node:fs'
import { lstat, stat } from 'node:fs/promises'
import { basename } from 'node:path'
import type { FileInfo } from '@berth/contract/agent/operations/fs-types.ts'
import { at } from './fs-error.ts'
import { modeText } from './mode-text.ts'

/** Describes the file at the path or behind its link; a dangling link is described itself. */
export async function readFileInfo(path: string): Promise<FileInfo> {
  return at({ field: 'path', path }, async () => {
    // A link that cannot be followed is still a file; a missing path fails again.
    const stats = await stat(path).catch(() => lstat(path))
    return fileInfo(basename(path) || '/', path, stats)
  })
}

export function fileInfo(name: string, path: string, stats: Stats): FileInfo {
  return {
    name,
    path,
    size_bytes: stats.isDirectory() ? 0 : stats.size,
    is_dir: stats.isDirectory(),
    mod_time: stats.mtime.toISOString(),
    mode: modeText(stats.mode),
  }
}
