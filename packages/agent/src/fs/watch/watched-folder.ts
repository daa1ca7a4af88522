import { type FSWatcher, watch } from 'node:fs'
import type { KnownFile } from './changes.ts'
import { splitKey, toBytes } from './raw-path.ts'

/** `cameOrWent`: or was moved here, or away; false when it was changed. */
type OnChange = (folder: WatchedFolder, name: string, cameOrWent: boolean) => void

/** A folder that the system tells about, and what was in it when it was looked at last. */
export class WatchedFolder {
  /** Changes when the folder is moved; the system goes on telling of it. */
  key: string
  readonly files = new Map<string, KnownFile>()
  /** Whether what is found in it next was there before. */
  isQuiet: boolean
  /** By which the system tells of the folder itself, as of something in it. */
  readonly ownName: string
  readonly #watcher: FSWatcher

  /** By Node's own watch of one folder; its recursive form misses what is made in new folders. */
  constructor(key: string, isQuiet: boolean, onChange: OnChange) {
    this.key = key
    this.isQuiet = isQuiet
    this.ownName = splitKey(key).name
    this.#watcher = watch(toBytes(key), { encoding: 'buffer', persistent: false }, (event, name) => {
      if (name) onChange(this, name.toString('latin1'), event === 'rename')
    })
    this.#watcher.on('error', () => {
      this.close()
      onChange(this, this.ownName, true) // The folder has gone: if it is the topmost, nobody else tells.
    })
  }

  close(): void {
    this.#watcher.close()
  }
}
