import type { CredentialProviderId, OrganizationId, ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely'
import type { Database } from '../../database/database.ts'
import { newestPage } from '../../database/newest-page.ts'
import type { CredentialProviderTable } from '../../database/tables.ts'
import { refuseTakenName } from '../../database/taken-name.ts'

export type StoredProvider = Selectable<CredentialProviderTable>

export class ProviderStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** The unique index decides between concurrent inserts with one name. */
  async insert(provider: Insertable<CredentialProviderTable>): Promise<StoredProvider> {
    return this.#database
      .insertInto('credential_providers')
      .values(provider)
      .returningAll()
      .executeTakeFirstOrThrow()
      .catch(refuseTakenName('credential_provider_names', 'credential_provider_name_taken', provider.name))
  }

  async find(organizationId: OrganizationId, id: string): Promise<StoredProvider | undefined> {
    return this.#database
      .selectFrom('credential_providers')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('id', '=', id as CredentialProviderId)
      .executeTakeFirst()
  }

  async findForProject(projectId: ProjectId, name: string): Promise<StoredProvider | undefined> {
    return this.#database
      .selectFrom('credential_providers')
      .innerJoin('projects', 'projects.organization_id', 'credential_providers.organization_id')
      .selectAll('credential_providers')
      .where('projects.id', '=', projectId)
      .where('credential_providers.name', '=', name)
      .executeTakeFirst()
  }

  /** Newest first. */
  async list(
    organizationId: OrganizationId,
    text: string | undefined,
    page: PageRequest,
  ): Promise<Page<StoredProvider>> {
    let query = this.#database
      .selectFrom('credential_providers')
      .selectAll()
      .where('organization_id', '=', organizationId)
    if (text !== undefined) {
      query = query.where(sql<boolean>`(strpos(lower(name), ${text.toLowerCase()}) > 0 or id = ${text})`)
    }
    return newestPage(query, page)
  }

  async update(
    organizationId: OrganizationId,
    id: string,
    columns: Updateable<CredentialProviderTable>,
  ): Promise<StoredProvider | undefined> {
    return this.#database
      .updateTable('credential_providers')
      .set(columns)
      .where('organization_id', '=', organizationId)
      .where('id', '=', id as CredentialProviderId)
      .returningAll()
      .executeTakeFirst()
      .catch(refuseTakenName('credential_provider_names', 'credential_provider_name_taken', columns.name))
  }

  /** Of two concurrent deletes, one returns true. */
  async delete(organizationId: OrganizationId, id: string): Promise<boolean> {
    const deleted = await this.#database
      .deleteFrom('credential_providers')
      .where('organization_id', '=', organizationId)
      .where('id', '=', id as CredentialProviderId)
      .returning('id')
      .executeTakeFirst()
    return deleted !== undefined
  }
}
