import type { SessionId } from '@berth/contract/common/ids.ts'
import { type Insertable, type Selectable, sql } from 'kysely'
import type { Database } from '../../../database/database.ts'
import type { DownloadPartTable, DownloadTable } from '../../../database/tables.ts'

/** A downloaded file that was kept. */
export type Download = Selectable<DownloadTable>
export type DownloadPart = Selectable<DownloadPartTable>

export class DownloadStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Inserts the file with all of its parts. Does nothing if it was kept before. */
  async insert(download: Insertable<DownloadTable>, parts: readonly DownloadPart[]): Promise<void> {
    await this.#database.transaction().execute(async (database) => {
      const inserted = await database
        .insertInto('downloads')
        .values(download)
        .onConflict((conflict) => conflict.doNothing())
        .returning('name')
        .executeTakeFirst()
      if (inserted && parts.length > 0)
        await database
          .insertInto('download_parts')
          .values([...parts])
          .execute()
    })
  }

  /** By name. */
  async list(sessionId: SessionId): Promise<readonly Download[]> {
    return this.#database
      .selectFrom('downloads')
      .selectAll()
      .where('session_id', '=', sessionId)
      .orderBy(sql`name collate "C"`)
      .execute()
  }

  async find(sessionId: SessionId, name: string): Promise<Download | undefined> {
    return this.#database
      .selectFrom('downloads')
      .selectAll()
      .where('session_id', '=', sessionId)
      .where('name', '=', name)
      .executeTakeFirst()
  }

  async listParts({ session_id, name }: Pick<Download, 'session_id' | 'name'>): Promise<readonly DownloadPart[]> {
    return this.#database
      .selectFrom('download_parts')
      .selectAll()
      .where('session_id', '=', session_id)
      .where('name', '=', name)
      .orderBy('number')
      .execute()
  }

  async listExpired(now: Date, limit: number): Promise<readonly Download[]> {
    return this.#database.selectFrom('downloads').selectAll().where('expires_at', '<=', now).limit(limit).execute()
  }

  async delete({ session_id, name }: Download): Promise<void> {
    await this.#database.deleteFrom('downloads').where('session_id', '=', session_id).where('name', '=', name).execute()
  }

  /** Returns those of the blobs that files still use. */
  async listUsedBlobs(names: readonly string[]): Promise<readonly string[]> {
    const rows = await this.#database.selectFrom('download_parts').select('blob').where('blob', 'in', names).execute()
    return rows.map(({ blob }) => blob)
  }
}
