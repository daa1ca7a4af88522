import type { CredentialId, ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely'
import type { Database } from '../../database/database.ts'
import { hasId, hasIdOrName } from '../../database/id-or-name.ts'
import { newestPage } from '../../database/newest-page.ts'
import type { CredentialTable } from '../../database/tables.ts'
import { refuseTakenName } from '../../database/taken-name.ts'

export type StoredCredential = Selectable<CredentialTable>

export interface CredentialFilter {
  readonly projectId: ProjectId
  readonly domain: string | undefined
  readonly text: string | undefined
}

export class CredentialStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** The unique index decides between concurrent inserts with one name. */
  async insert(credential: Insertable<CredentialTable>): Promise<StoredCredential> {
    return this.#database
      .insertInto('credentials')
      .values(credential)
      .returningAll()
      .executeTakeFirstOrThrow()
      .catch(refuseTakenName('credential_names', 'credential_name_taken', credential.name))
  }

  /** Finds by id or, if there is none, by name. */
  async find(projectId: ProjectId, idOrName: string): Promise<StoredCredential | undefined> {
    return this.#database
      .selectFrom('credentials')
      .selectAll()
      .where('project_id', '=', projectId)
      .where(hasIdOrName(idOrName))
      .orderBy(hasId(idOrName), 'desc')
      .executeTakeFirst()
  }

  /** Newest first. */
  async list({ projectId, domain, text }: CredentialFilter, page: PageRequest): Promise<Page<StoredCredential>> {
    let query = this.#database.selectFrom('credentials').selectAll().where('project_id', '=', projectId)
    if (domain !== undefined) query = query.where('domain', '=', domain.toLowerCase())
    if (text !== undefined) {
      const part = text.toLowerCase()
      query = query.where(
        sql<boolean>`(strpos(lower(name), ${part}) > 0 or strpos(domain, ${part}) > 0 or id = ${part})`,
      )
    }
    return newestPage(query, page)
  }

  /** Updates the version that was read. Returns undefined when it was changed meanwhile. */
  async update(
    { id, version }: StoredCredential,
    columns: Updateable<CredentialTable>,
  ): Promise<StoredCredential | undefined> {
    return this.#database
      .updateTable('credentials')
      .set({ ...columns, version: version + 1 })
      .where('id', '=', id)
      .where('version', '=', version)
      .returningAll()
      .executeTakeFirst()
      .catch(refuseTakenName('credential_names', 'credential_name_taken', columns.name))
  }

  /** Of two concurrent deletes, one returns true. */
  async delete(id: CredentialId): Promise<boolean> {
    const deleted = await this.#database
      .deleteFrom('credentials')
      .where('id', '=', id)
      .returning('id')
      .executeTakeFirst()
    return deleted !== undefined
  }
}
