import type { OrganizationId, OtlpDestinationId, ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely'
import { type Database, violates } from '../../database/database.ts'
import { newestPage } from '../../database/newest-page.ts'
import type { OtlpDestinationTable } from '../../database/tables.ts'
import { refuseTakenName } from '../../database/taken-name.ts'

export type StoredOtlpDestination = Selectable<OtlpDestinationTable>

export interface DestinationFilter {
  readonly name: string | undefined
  readonly text: string | undefined
}

export class OtlpDestinationStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** The unique index decides between concurrent inserts with one name. */
  async insert(destination: Insertable<OtlpDestinationTable>): Promise<StoredOtlpDestination> {
    return this.#database
      .insertInto('otlp_destinations')
      .values(destination)
      .returningAll()
      .executeTakeFirstOrThrow()
      .catch(refuseTakenName('otlp_destination_names', 'otlp_destination_name_taken', destination.name))
  }

  /** Finds by id or, if there is none, by name. */
  async find(organizationId: OrganizationId, idOrName: string): Promise<StoredOtlpDestination | undefined> {
    return this.#database
      .selectFrom('otlp_destinations')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where(sql<boolean>`(id = ${idOrName} or lower(name) = lower(${idOrName}))`)
      .orderBy(sql`id = ${idOrName}`, 'desc')
      .executeTakeFirst()
  }

  /** The destination, if the project belongs to its organization. */
  async findForProject(
    projectId: ProjectId,
    { id, name }: { readonly id?: string | undefined; readonly name?: string | undefined },
  ): Promise<OtlpDestinationId | undefined> {
    const found = await this.#database
      .selectFrom('otlp_destinations')
      .innerJoin('projects', 'projects.organization_id', 'otlp_destinations.organization_id')
      .select('otlp_destinations.id')
      .where('projects.id', '=', projectId)
      .where(
        id === undefined
          ? sql<boolean>`lower(otlp_destinations.name) = lower(${name ?? ''})`
          : sql<boolean>`otlp_destinations.id = ${id}`,
      )
      .executeTakeFirst()
    return found?.id
  }

  async get(id: OtlpDestinationId): Promise<StoredOtlpDestination | undefined> {
    return this.#database.selectFrom('otlp_destinations').selectAll().where('id', '=', id).executeTakeFirst()
  }

  /** Newest first. */
  async list(
    organizationId: OrganizationId,
    { name, text }: DestinationFilter,
    page: PageRequest,
  ): Promise<Page<StoredOtlpDestination>> {
    let query = this.#database.selectFrom('otlp_destinations').selectAll().where('organization_id', '=', organizationId)
    if (name !== undefined) query = query.where(sql<boolean>`lower(name) = lower(${name})`)
    if (text !== undefined) {
      const part = text.toLowerCase()
      query = query.where(
        sql<boolean>`(strpos(lower(name), ${part}) > 0 or strpos(lower(endpoint), ${part}) > 0 or id = ${text})`,
      )
    }
    return newestPage(query, page)
  }

  /** Updates the version that was read. Returns undefined when it was changed meanwhile. */
  async update(
    { id, version }: StoredOtlpDestination,
    columns: Updateable<OtlpDestinationTable>,
  ): Promise<StoredOtlpDestination | undefined> {
    return this.#database
      .updateTable('otlp_destinations')
      .set({ ...columns, version: version + 1 })
      .where('id', '=', id)
      .where('version', '=', version)
      .returningAll()
      .executeTakeFirst()
      .catch(refuseTakenName('otlp_destination_names', 'otlp_destination_name_taken', columns.name))
  }

  /** Does not change the version, so the exporter keeps its pipeline. */
  async recordExport(id: OtlpDestinationId, at: Date): Promise<void> {
    await this.#database
      .updateTable('otlp_destinations')
      .set({ consecutive_failures: 0, last_export_at: at })
      .where('id', '=', id)
      .execute()
  }

  async recordFailure(id: OtlpDestinationId, message: string, at: Date): Promise<void> {
    await this.#database
      .updateTable('otlp_destinations')
      .set({ consecutive_failures: sql`consecutive_failures + 1`, last_error: message, last_error_at: at })
      .where('id', '=', id)
      .execute()
  }

  /** Of two concurrent deletes, one returns true. Fails while an active session uses it. */
  async delete(organizationId: OrganizationId, id: OtlpDestinationId): Promise<boolean> {
    const deleted = await this.#database
      .deleteFrom('otlp_destinations')
      .where('organization_id', '=', organizationId)
      .where('id', '=', id)
      .returning('id')
      .executeTakeFirst()
      .catch((error: unknown) => {
        if (!violates(error, 'sessions_bound_otlp_destination_id_fkey')) throw error
        throw new BerthError('otlp_destination_in_use', undefined, { cause: error })
      })
    return deleted !== undefined
  }
}
