import { randomUUID } from 'node:crypto'
import { realpath, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import type { FsEvent } from '@berth/contract/agent/operations/fs-types.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { refuseKernelFiles } from '../disk-file.ts'
import { at } from '../fs-error.ts'
import type { FileWatch, WatchTarget } from './file-watch.ts'

const maxWatches = 100
const maxWatchedFiles = 100_000

/** All watches of the session, until they are stopped. */
export class Watches {
  readonly #open = new Map<string, FileWatch>()
  readonly #room = { files: maxWatchedFiles }
  #opening = 0

  /** Returns the id of a new watch. */
  async start(path: string, recursive: boolean): Promise<string> {
    if (this.#open.size + this.#opening >= maxWatches) this.#dropEnded()
    if (this.#open.size + this.#opening >= maxWatches) {
      throw new BerthError('watch_limit_reached', { reason: `A session has at most ${maxWatches} watches.` })
    }
    this.#opening += 1
    try {
      const target = await at({ field: 'path', path }, () => targetOf(path, recursive))
      const { FileWatch } = await import('./file-watch.ts')
      const id = randomUUID()
      this.#open.set(id, await FileWatch.open(target, this.#room))
      return id
    } finally {
      this.#opening -= 1
    }
  }

  read(id: string, signal: AbortSignal): AsyncIterable<FsEvent> {
    return this.#find(id).events.read(signal)
  }

  stop(id: string): void {
    this.#find(id).close()
    this.#open.delete(id)
  }

  /** Watches of deleted folders can still be read to their end while there is room. */
  #dropEnded(): void {
    for (const [id, watch] of this.#open) if (watch.hasEnded) this.#open.delete(id)
  }

  #find(id: string): FileWatch {
    const found = this.#open.get(id)
    if (!found) throw new BerthError('watch_not_found', { watch: id })
    return found
  }
}

/** A file is watched through its folder: replacing it would end a watch of the file itself. */
async function targetOf(path: string, recursive: boolean): Promise<WatchTarget> {
  const [stats, real] = [await stat(path), await realpath(path)]
  await refuseKernelFiles({ field: 'path', path: real })
  if (stats.isDirectory()) return { path, folder: real, recursive }
  return { path, folder: dirname(real), only: basename(real), recursive: false }
}
