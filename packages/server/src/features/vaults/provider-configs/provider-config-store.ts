import type { OrganizationId, VaultProviderConfigId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import type { Insertable, Selectable, Updateable } from 'kysely'
import type { Database } from '../../../database/database.ts'
import { hasId, hasIdOrName } from '../../../database/id-or-name.ts'
import { newestPage } from '../../../database/newest-page.ts'
import type { VaultProviderConfigTable } from '../../../database/tables.ts'
import { refuseTakenName } from '../../../database/taken-name.ts'

export type StoredProviderConfig = Selectable<VaultProviderConfigTable>

export class ProviderConfigStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** The unique index decides between concurrent inserts with one name. */
  async insert(config: Insertable<VaultProviderConfigTable>): Promise<StoredProviderConfig> {
    return this.#database
      .insertInto('vault_provider_configs')
      .values(config)
      .returningAll()
      .executeTakeFirstOrThrow()
      .catch(refuseTakenName('vault_provider_config_names', 'vault_provider_config_name_taken', config.name))
  }

  /** Finds by id or, if there is none, by name. */
  async find(organizationId: OrganizationId, idOrName: string): Promise<StoredProviderConfig | undefined> {
    return this.#database
      .selectFrom('vault_provider_configs')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where(hasIdOrName(idOrName))
      .orderBy(hasId(idOrName), 'desc')
      .executeTakeFirst()
  }

  async list(organizationId: OrganizationId, page: PageRequest): Promise<Page<StoredProviderConfig>> {
    const query = this.#database
      .selectFrom('vault_provider_configs')
      .selectAll()
      .where('organization_id', '=', organizationId)
    return newestPage(query, page)
  }

  async update(
    id: VaultProviderConfigId,
    columns: Updateable<VaultProviderConfigTable>,
  ): Promise<StoredProviderConfig | undefined> {
    return this.#database
      .updateTable('vault_provider_configs')
      .set(columns)
      .where('id', '=', id)
      .returningAll()
      .executeTakeFirst()
      .catch(refuseTakenName('vault_provider_config_names', 'vault_provider_config_name_taken', columns.name))
  }

  /** Of two concurrent deletes, one returns true. */
  async delete(id: VaultProviderConfigId): Promise<boolean> {
    const deleted = await this.#database
      .deleteFrom('vault_provider_configs')
      .where('id', '=', id)
      .returning('id')
      .executeTakeFirst()
    return deleted !== undefined
  }
}
