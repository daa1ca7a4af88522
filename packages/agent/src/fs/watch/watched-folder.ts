import { type FSWatcher, watch } from 'node:fs'
import type { KnownFile } from './changes.ts'
import { splitKey, toBytes } from './raw-path.ts'

/** `cameOrWent`: created, deleted or moved; false if changed. */
type OnChange = (folder: WatchedFolder, name: string, cameOrWent: boolean) => void

/** A folder whose events the system reports, and its contents at the last comparison. */
export class WatchedFolder {
  /** Changes when the folder is moved; the system's watch follows the move. */
  key: string
  readonly files = new Map<string, KnownFile>()
  /** Whether the files found next existed before, so that they cause no events. */
  isQuiet: boolean
  /** The name by which the system reports the folder itself, as if it were a file in it. */
  readonly ownName: string
  readonly #watcher: FSWatcher

  /** Uses Node's watch of a single folder; its recursive form misses files created in new folders. */
  constructor(key: string, isQuiet: boolean, onChange: OnChange) {
    this.key = key
    this.isQuiet = isQuiet
    this.ownName = splitKey(key).name
    this.#watcher = watch(toBytes(key), { encoding: 'buffer', persistent: false }, (event, name) => {
      if (name) onChange(this, name.toString('latin1'), event === 'rename')
    })
    this.#watcher.on('error', () => {
      this.close()
      onChange(this, this.ownName, true) // The folder is gone: for the topmost one, nobody else reports it.
    })
  }

  close(): void {
    this.#watcher.close()
  }
}
