import type { ProjectId, VaultId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { type Insertable, type Selectable, sql } from 'kysely'
import type { Database } from '../../database/database.ts'
import { newestPage } from '../../database/newest-page.ts'
import type { VaultTable } from '../../database/tables.ts'
import type { VaultKeyPair } from './vault.ts'

export type StoredVault = Selectable<VaultTable>

export class VaultStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Undefined if the project already has a vault with this name. */
  async insert(vault: Insertable<VaultTable>): Promise<StoredVault | undefined> {
    return this.#database
      .insertInto('vaults')
      .values(vault)
      .onConflict((conflict) => conflict.columns(['project_id', 'name']).doNothing())
      .returningAll()
      .executeTakeFirst()
  }

  /** A name never has the form of an id. */
  async find(projectId: ProjectId, idOrName: string): Promise<StoredVault | undefined> {
    return this.#database
      .selectFrom('vaults')
      .selectAll()
      .where('project_id', '=', projectId)
      .where((where) => where.or([where('id', '=', idOrName as VaultId), where('name', '=', idOrName)]))
      .executeTakeFirst()
  }

  /** Newest first. */
  async list(projectId: ProjectId, text: string | undefined, page: PageRequest): Promise<Page<StoredVault>> {
    let query = this.#database.selectFrom('vaults').selectAll().where('project_id', '=', projectId)
    if (text !== undefined) {
      const part = text.toLowerCase()
      query = query.where(sql<boolean>`(strpos(lower(name), ${part}) > 0 or id = ${part})`)
    }
    return newestPage(query, page)
  }

  /** Also deletes items and links. Of two concurrent deletes, one returns true. */
  async delete(id: VaultId): Promise<boolean> {
    const deleted = await this.#database.deleteFrom('vaults').where('id', '=', id).returning('id').executeTakeFirst()
    return deleted !== undefined
  }

  /** One statement: if several calls create the first keys, all return the stored ones. */
  async keepKeys(id: VaultId, { publicKey, sealedPrivateKey }: VaultKeyPair): Promise<StoredVault | undefined> {
    return this.#database
      .updateTable('vaults')
      .set(({ ref, fn, val }) => ({
        public_key: sql`coalesce(public_key, ${JSON.stringify(publicKey)}::jsonb)`,
        sealed_private_key: fn.coalesce(ref('sealed_private_key'), val(sealedPrivateKey)),
      }))
      .where('id', '=', id)
      .returningAll()
      .executeTakeFirst()
  }
}
