import type { ProjectId, SearchId } from '@berth/contract/common/ids.ts'
import type { Insertable, Selectable } from 'kysely'
import type { Database } from '../../database/database.ts'
import type { PageContentTable, SearchTable } from '../../database/tables.ts'

export type StoredSearch = Selectable<SearchTable>

export class SearchStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async insert(search: Insertable<SearchTable>): Promise<void> {
    await this.#database.insertInto('searches').values(search).execute()
  }

  /** Undefined once it has expired, even if it is not removed yet. */
  async find(projectId: ProjectId, id: string, now: Date): Promise<StoredSearch | undefined> {
    return this.#database
      .selectFrom('searches')
      .selectAll()
      .where('project_id', '=', projectId)
      .where('id', '=', id as SearchId)
      .where('expires_at', '>', now)
      .executeTakeFirst()
  }

  async removeExpired(now: Date): Promise<void> {
    await this.#database.deleteFrom('searches').where('expires_at', '<=', now).execute()
  }

  async findPage(projectId: ProjectId, key: Buffer, since: Date): Promise<Selectable<PageContentTable> | undefined> {
    return this.#database
      .selectFrom('page_contents')
      .selectAll()
      .where('project_id', '=', projectId)
      .where('page_key', '=', key)
      .where('fetched_at', '>=', since)
      .executeTakeFirst()
  }

  /** Of two concurrent writes, the newer content is kept. */
  async putPage(page: Insertable<PageContentTable>): Promise<void> {
    await this.#database
      .insertInto('page_contents')
      .values(page)
      .onConflict((conflict) =>
        conflict
          .columns(['project_id', 'page_key'])
          .doUpdateSet({ sealed_content: page.sealed_content, fetched_at: page.fetched_at })
          .where('page_contents.fetched_at', '<=', page.fetched_at),
      )
      .execute()
  }

  async removePagesBefore(time: Date): Promise<void> {
    await this.#database.deleteFrom('page_contents').where('fetched_at', '<', time).execute()
  }
}
