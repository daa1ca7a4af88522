import { type FSWatcher, watch } from 'node:fs'
import type { KnownFile } from './changes.ts'
import { toBytes } from './raw-path.ts'

/** A folder that the system tells about, and what was in it when it was looked at last. */
export class WatchedFolder {
  /** Changes when the folder is moved; the system goes on telling of it. */
  key: string
  readonly files = new Map<string, KnownFile>()
  /** Whether what is found in it next was there before. */
  isQuiet: boolean
  readonly #watcher: FSWatcher

  /** By Node's own watch of one folder; its recursive form misses what is made in new folders. */
  constructor(key: string, isQuiet: boolean, onChange: (folder: WatchedFolder, name: string) => void) {
    this.key = key
    this.isQuiet = isQuiet
    this.#watcher = watch(toBytes(key), { encoding: 'buffer', persistent: false }, (_event, name) => {
      if (name) onChange(this, name.toString('latin1'))
    })
    this.#watcher.on('error', () => this.close()) // The folder has gone, which the one above tells.
  }

  close(): void {
    this.#watcher.close()
  }
}
