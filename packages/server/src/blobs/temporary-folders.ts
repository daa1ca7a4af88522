import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'

import type { Trash } from '../host/trash.ts'

/** A folder that goes with its owner. */
export interface TemporaryFolder extends AsyncDisposable {
  readonly path: string
}

/** Where bodies wait that must be seen whole before anything is kept of them. A crash leaves nothing beyond the next start. */
export class TemporaryFolders {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  /** What a crash has left goes to the trash: bodies can be large, and have many files. */
  static async open(folder: string, trash: Trash): Promise<TemporaryFolders> {
    await trash.discard(folder)
    await mkdir(folder, { mode: 0o700 })
    return new TemporaryFolders(folder)
  }

  async make(): Promise<TemporaryFolder> {
    const path = await mkdtemp(join(this.#folder, 'body-'))
    return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
  }
}
