import type { ExtensionId, ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { type Insertable, type Selectable, sql } from 'kysely'
import type { Database } from '../../database/database.ts'
import { hasId, hasIdOrName } from '../../database/id-or-name.ts'
import { newestPage } from '../../database/newest-page.ts'
import { plainLowerCase } from '../../database/plain-lower-case.ts'
import type { ExtensionTable } from '../../database/tables.ts'
import { refuseTakenName } from '../../database/taken-name.ts'
import { unwaitedCommit } from '../../database/unwaited-commit.ts'

/** A stored extension. */
export type StoredExtension = Selectable<ExtensionTable>

export interface ExtensionFilter {
  readonly projectId: ProjectId
  /** Part of the name, or the whole id. */
  readonly text: string | undefined
  readonly name: string | undefined
}

export class ExtensionStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** The unique index decides between concurrent inserts with one name. */
  async insert(extension: Insertable<ExtensionTable>): Promise<StoredExtension> {
    return this.#database
      .insertInto('extensions')
      .values(extension)
      .returningAll()
      .executeTakeFirstOrThrow()
      .catch(refuseTakenName('extension_names', 'extension_name_taken', extension.name))
  }

  /** Finds by id or, if there is none, by name. */
  async find(projectId: ProjectId, idOrName: string): Promise<StoredExtension | undefined> {
    return this.#database
      .selectFrom('extensions')
      .selectAll()
      .where('project_id', '=', projectId)
      .where(hasIdOrName(idOrName))
      .orderBy(hasId(idOrName), 'desc')
      .executeTakeFirst()
  }

  /** Marks it as used. Returns undefined when it no longer exists. */
  async use(
    projectId: ProjectId,
    key: { readonly id: string } | { readonly name: string },
    now: Date,
  ): Promise<StoredExtension | undefined> {
    return (
      this.#database
        .updateTable('extensions')
        .set({ last_used_at: now })
        .where('project_id', '=', projectId)
        .where((where) => ('id' in key ? where('id', '=', key.id as ExtensionId) : where('name', '=', key.name)))
        .returningAll()
        // A create does not have to wait until the time of use is durable.
        .returning(unwaitedCommit)
        .executeTakeFirst()
    )
  }

  /** Newest first. */
  async list({ projectId, text, name }: ExtensionFilter, page: PageRequest): Promise<Page<StoredExtension>> {
    let query = this.#database.selectFrom('extensions').selectAll().where('project_id', '=', projectId)
    if (name !== undefined) query = query.where(sql<boolean>`lower(name) = ${plainLowerCase(name)}`)
    if (text !== undefined) {
      query = query.where(sql<boolean>`(strpos(lower(name), ${text.toLowerCase()}) > 0 or id = ${text})`)
    }
    return newestPage(query, page)
  }

  async delete(projectId: ProjectId, id: ExtensionId): Promise<boolean> {
    const deleted = await this.#database
      .deleteFrom('extensions')
      .where('project_id', '=', projectId)
      .where('id', '=', id)
      .returning('id')
      .executeTakeFirst()
    return deleted !== undefined
  }

  /** Returns those of the blobs that extensions still use. */
  async listUsedBlobs(names: readonly string[]): Promise<readonly string[]> {
    const rows = await this.#database.selectFrom('extensions').select('blob').where('blob', 'in', names).execute()
    return rows.map(({ blob }) => blob)
  }
}
