import { randomUUID } from 'node:crypto'
import { BlobNotFound, type Blobs } from '../blobs/blobs.ts'
import type { Database } from '../database/database.ts'

/**
 * A blob that shows whether servers of one database have the same blobs, wherever each of them says that they are: the
 * first of them writes it, and the others look for it.
 */
export class SharedBlobs {
  readonly #database: Database
  readonly #blobs: Blobs

  constructor(database: Database, blobs: Blobs) {
    this.#database = database
    this.#blobs = blobs
  }

  /**
   * Whether this server has the blobs of those before. With `isFirst` there are no others, and they will follow this one.
   * One server at a time may ask.
   */
  async compare({ isFirst }: { readonly isFirst: boolean }): Promise<boolean> {
    const marker = await this.#readMarker()
    if (marker !== undefined && (await this.#has(marker))) return true
    if (marker !== undefined && !isFirst) return false
    await this.#writeMarker()
    return true
  }

  /** For the sweep of blobs that nothing mentions. */
  async listUsedBlobs(names: readonly string[]): Promise<readonly string[]> {
    const marker = await this.#readMarker()
    return marker !== undefined && names.includes(marker) ? [marker] : []
  }

  async #readMarker(): Promise<string | undefined> {
    const row = await this.#database.selectFrom('shared_blobs').select('marker').executeTakeFirst()
    return row?.marker
  }

  async #writeMarker(): Promise<void> {
    const marker = `servers-${randomUUID()}`
    await this.#blobs.write(marker, content(marker))
    await this.#database
      .insertInto('shared_blobs')
      .values({ marker })
      .onConflict((conflict) => conflict.column('is_only').doUpdateSet({ marker }))
      .execute()
  }

  async #has(name: string): Promise<boolean> {
    try {
      const blob = await this.#blobs.read(name)
      blob.on('error', () => {}).destroy()
      return true
    } catch (error) {
      if (error instanceof BlobNotFound) return false
      throw error
    }
  }
}

async function* content(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`${text}: this blob belongs to the servers of one database, do not remove it\n`)
}
