import { randomUUID } from 'node:crypto'
import { link, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { BlobExists, type BlobFilter, BlobNotFound, type BlobRange, type Blobs, checkBlobName } from './blobs.ts'

const unfinished = '.new'

/** Stores blobs as files in a folder that only berth can read. */
export class FolderBlobs implements Blobs {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  /** Removes incomplete writes of a crash: only this server uses the folder. */
  static async open(folder: string): Promise<FolderBlobs> {
    const blobs = await FolderBlobs.openShared(folder)
    const names = await readdir(folder)
    await Promise.all(names.filter((name) => name.endsWith(unfinished)).map((name) => rm(join(folder, name))))
    return blobs
  }

  /** For a folder that other servers use too: incomplete writes may be theirs. */
  static async openShared(folder: string): Promise<FolderBlobs> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    return new FolderBlobs(folder)
  }

  async write(name: string, content: AsyncIterable<Uint8Array>): Promise<{ readonly sizeBytes: number }> {
    const path = this.#pathOf(name)
    const temporary = `${path}.${randomUUID()}${unfinished}`
    const file = await open(temporary, 'wx', 0o600)
    try {
      const output = file.createWriteStream({ flush: true })
      await pipeline(Readable.from(content, { objectMode: false }), output)
      // Unlike rename, link never replaces a file.
      await link(temporary, path).catch((cause: NodeJS.ErrnoException) => {
        throw cause.code === 'EEXIST' ? new BlobExists(name, { cause }) : cause
      })
      await this.#flushNames()
      return { sizeBytes: output.bytesWritten }
    } finally {
      await file.close().catch(() => {}) // The stream closes it, unless it never started.
      await rm(temporary, { force: true })
    }
  }

  async read(name: string, { start, length }: BlobRange = { start: 0 }): Promise<Readable> {
    const file = await open(this.#pathOf(name)).catch((cause: NodeJS.ErrnoException) => {
      throw cause.code === 'ENOENT' ? new BlobNotFound(name, { cause }) : cause
    })
    if (length !== 0) return file.createReadStream({ start, ...(length && { end: start + length - 1 }) })
    await file.close()
    return Readable.from([])
  }

  async remove(name: string): Promise<void> {
    await rm(this.#pathOf(name), { force: true })
  }

  async *list({ prefix = '', before }: BlobFilter): AsyncGenerator<string> {
    for (const name of await readdir(this.#folder)) {
      if (!name.startsWith(prefix) || name.endsWith(unfinished)) continue
      if (await this.#isOlder(name, before)) yield name
    }
  }

  async removeUnfinished(before: Date): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      if (!name.endsWith(unfinished)) continue
      if (await this.#isOlder(name, before)) await rm(join(this.#folder, name), { force: true })
    }
  }

  /** Decided by the time of the last change. False for a file that was removed meanwhile. */
  #isOlder(name: string, moment: Date): Promise<boolean> {
    return stat(join(this.#folder, name)).then(
      ({ mtime }) => mtime < moment,
      () => false,
    )
  }

  #pathOf(name: string): string {
    checkBlobName(name)
    return join(this.#folder, name)
  }

  /** A new name is durable once its folder is flushed. */
  async #flushNames(): Promise<void> {
    const folder = await open(this.#folder)
    await folder.sync()
    await folder.close()
  }
}
