import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'

import type { Trash } from '../host/trash.ts'

/** A folder that is removed when its owner is disposed. */
export interface TemporaryFolder extends AsyncDisposable {
  readonly path: string
}

/**
 * Temporary folders for bodies that must be validated as a whole before they are stored. The next start removes what a
 * crash left.
 */
export class TemporaryFolders {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  /** Files left by a crash go to the trash, because they can be large and numerous. */
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
