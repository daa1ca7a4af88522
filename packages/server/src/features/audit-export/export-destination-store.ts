import type { ExportDestinationId, OrganizationId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely'
import type { Database } from '../../database/database.ts'
import { newestPage } from '../../database/newest-page.ts'
import type { ExportDestinationTable } from '../../database/tables.ts'

export type StoredDestination = Selectable<ExportDestinationTable>

export class ExportDestinationStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async insert(destination: Insertable<ExportDestinationTable>): Promise<StoredDestination> {
    return this.#database
      .insertInto('audit_export_destinations')
      .values(destination)
      .returningAll()
      .executeTakeFirstOrThrow()
  }

  async find(organizationId: OrganizationId, id: string): Promise<StoredDestination | undefined> {
    return this.#database
      .selectFrom('audit_export_destinations')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('id', '=', id as ExportDestinationId)
      .executeTakeFirst()
  }

  /** Newest first. */
  async list(organizationId: OrganizationId, page: PageRequest): Promise<Page<StoredDestination>> {
    const query = this.#database
      .selectFrom('audit_export_destinations')
      .selectAll()
      .where('organization_id', '=', organizationId)
    return newestPage(query, page)
  }

  /** `startsAt` is where the export starts if it has not started before. */
  async update(
    organizationId: OrganizationId,
    id: string,
    columns: Updateable<ExportDestinationTable>,
    startsAt: number | undefined,
  ): Promise<StoredDestination | undefined> {
    return this.#database
      .updateTable('audit_export_destinations')
      .set(({ ref, fn, val }) => ({
        ...columns,
        version: sql<number>`version + 1`,
        ...(startsAt !== undefined && {
          exported_sequence: fn.coalesce(ref('exported_sequence'), val(startsAt)),
        }),
      }))
      .where('organization_id', '=', organizationId)
      .where('id', '=', id as ExportDestinationId)
      .returningAll()
      .executeTakeFirst()
  }

  /** Of two concurrent deletes, one returns true. */
  async delete(organizationId: OrganizationId, id: string): Promise<boolean> {
    const deleted = await this.#database
      .deleteFrom('audit_export_destinations')
      .where('organization_id', '=', organizationId)
      .where('id', '=', id as ExportDestinationId)
      .returning('id')
      .executeTakeFirst()
    return deleted !== undefined
  }

  /** Lists active destinations that are not waiting after a failure. */
  async listDue(now: Date): Promise<readonly StoredDestination[]> {
    return this.#database
      .selectFrom('audit_export_destinations')
      .selectAll()
      .where('status', '=', 'active')
      .where((where) => where.or([where('next_attempt_at', 'is', null), where('next_attempt_at', '<=', now)]))
      .orderBy('id')
      .execute()
  }

  /** Records the progress of an export, unless a caller has changed, paused or deleted the destination meanwhile. */
  async recordProgress(
    { id, version }: StoredDestination,
    columns: Updateable<ExportDestinationTable>,
  ): Promise<boolean> {
    const noted = await this.#database
      .updateTable('audit_export_destinations')
      .set(columns)
      .where('id', '=', id)
      .where('version', '=', version)
      .where('status', '=', 'active')
      .returning('id')
      .executeTakeFirst()
    return noted !== undefined
  }
}
