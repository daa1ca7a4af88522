import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { BlobStore } from './blob-store.ts'

const unfinished = '.new'

/** Blobs as files of a folder that only berth can read. */
export class FolderBlobs implements BlobStore {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  /** Removes what writes have left that a crash broke off. */
  static async open(folder: string): Promise<FolderBlobs> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const names = await readdir(folder)
    await Promise.all(names.filter((name) => name.endsWith(unfinished)).map((name) => rm(join(folder, name))))
    return new FolderBlobs(folder)
  }

  async write(name: string, content: AsyncIterable<Uint8Array>): Promise<{ readonly sizeBytes: number }> {
    const path = this.#pathOf(name)
    const file = await open(`${path}${unfinished}`, 'wx', 0o600)
    try {
      const output = file.createWriteStream({ flush: true })
      await pipeline(Readable.from(content, { objectMode: false }), output)
      await rename(`${path}${unfinished}`, path)
      await this.#flushNames()
      return { sizeBytes: output.bytesWritten }
    } catch (error) {
      await file.close().catch(() => {}) // The stream has closed it, unless it never began.
      await rm(`${path}${unfinished}`, { force: true })
      throw error
    }
  }

  async read(name: string): Promise<Readable> {
    const file = await open(this.#pathOf(name))
    return file.createReadStream()
  }

  async remove(name: string): Promise<void> {
    await rm(this.#pathOf(name), { force: true })
  }

  async list(before: Date): Promise<readonly string[]> {
    const names = (await readdir(this.#folder)).filter((name) => !name.endsWith(unfinished))
    const times = await Promise.all(
      names.map((name) =>
        stat(join(this.#folder, name)).then(
          ({ mtime }) => mtime,
          () => undefined, // Removed meanwhile.
        ),
      ),
    )
    return names.filter((_name, index) => (times[index] ?? before) < before)
  }

  #pathOf(name: string): string {
    if (!/^[A-Za-z0-9-]+$/.test(name)) throw new Error(`${name} is no name of a blob`)
    return join(this.#folder, name)
  }

  /** A rename is on disk when its folder is. */
  async #flushNames(): Promise<void> {
    const folder = await open(this.#folder)
    await folder.sync()
    await folder.close()
  }
}
