import { watch } from 'node:fs'
import type { KnownFile } from './changes.ts'
import { toBytes } from './raw-path.ts'

/** A folder that the system tells about, and what was in it when it was looked at last. */
export interface WatchedFolder {
  readonly files: Map<string, KnownFile>
  /** Whether what is found in it next was there before. */
  isQuiet: boolean
  close(): void
}

/** Node's own watch of one folder; its recursive form misses what is made in new folders. */
export function watchFolder(key: string, isQuiet: boolean, onChange: (name: string) => void): WatchedFolder {
  const watcher = watch(toBytes(key), { encoding: 'buffer' }, (_event, name) => {
    if (name) onChange(name.toString('latin1'))
  })
  watcher.on('error', () => watcher.close()) // The folder has gone, which the one above tells.
  return { files: new Map(), isQuiet, close: () => watcher.close() }
}
