import { randomUUID } from 'node:crypto'
import { BlobNotFound, type Blobs } from '../blobs/blobs.ts'
import type { Database } from '../database/database.ts'

/**
 * Detects whether servers of one database use the same blob store, whatever their settings say: the first server writes
 * a blob, and the others look for it.
 */
export class SharedBlobs {
  readonly #database: Database
  readonly #blobs: Blobs

  constructor(database: Database, blobs: Blobs) {
    this.#database = database
    this.#blobs = blobs
  }

  /**
   * Whether this server uses the same blobs as the others. With `isFirst` there are no others yet. Only one server at a
   * time may call this.
   */
  async compare({ isFirst }: { readonly isFirst: boolean }): Promise<boolean> {
    const marker = await this.#readMarker()
    if (marker !== undefined && (await this.#has(marker))) return true
    if (marker !== undefined && !isFirst) return false
    await this.#writeMarker()
    return true
  }

  /** Protects the blob from the sweep of unreferenced blobs. */
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
