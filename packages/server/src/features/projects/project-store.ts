import type { OrganizationId, ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely'
import { type Database, referencingTable } from '../../database/database.ts'
import { hasId, hasIdOrName } from '../../database/id-or-name.ts'
import { newestPage } from '../../database/newest-page.ts'
import { plainForm } from '../../database/plain-lower-case.ts'
import type { ProjectTable } from '../../database/tables.ts'
import { refuseTakenName } from '../../database/taken-name.ts'

export type Project = Selectable<ProjectTable>

export interface ProjectFilter {
  readonly organizationId: OrganizationId
  /** The only visible project, for keys of one project. */
  readonly only: ProjectId | null
  readonly text: string | undefined
  readonly name: string | undefined
}

export class ProjectStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** The constraint decides between concurrent inserts with one name. */
  async insert(project: Insertable<ProjectTable>): Promise<Project> {
    return this.#database
      .insertInto('projects')
      .values(project)
      .returningAll()
      .executeTakeFirstOrThrow()
      .catch(refuseTakenName('projects_organization_id_name_key', 'project_name_taken', project.name))
  }

  /** Finds by id or, if there is none, by name, including archived projects. */
  async find(organizationId: OrganizationId, idOrName: string): Promise<Project | undefined> {
    return this.#database
      .selectFrom('projects')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where(hasIdOrName(idOrName))
      .orderBy(hasId(idOrName), 'desc')
      .executeTakeFirst()
  }

  /** Newest first. */
  async list({ organizationId, only, text, name }: ProjectFilter, page: PageRequest): Promise<Page<Project>> {
    let query = this.#database.selectFrom('projects').selectAll().where('organization_id', '=', organizationId)
    if (only) query = query.where('id', '=', only)
    if (text !== undefined) query = query.where(sql<boolean>`strpos(lower(name), ${text.toLowerCase()}) > 0`)
    if (name !== undefined) query = query.where(sql<boolean>`${plainForm(sql.ref('name'))} = ${plainForm(name)}`)
    return newestPage(query, page)
  }

  async update(id: ProjectId, columns: Updateable<ProjectTable>): Promise<Project | undefined> {
    return updateOne(this.#database, id, columns)
  }

  /** Like `update`, but fails for the last active project. */
  async archive(
    organizationId: OrganizationId,
    id: ProjectId,
    columns: Updateable<ProjectTable>,
  ): Promise<Project | undefined> {
    return this.#database.transaction().execute(async (database) => {
      await requireOtherActive(database, organizationId, id)
      return updateOne(database, id, columns)
    })
  }

  /** Removes the project if no row refers to it. Returns whether it existed. */
  async delete(organizationId: OrganizationId, id: ProjectId): Promise<boolean> {
    return this.#database.transaction().execute(async (database) => {
      await requireOtherActive(database, organizationId, id)
      const deleted = await database
        .deleteFrom('projects')
        .where('id', '=', id)
        .returning('id')
        .executeTakeFirst()
        .catch((error: unknown) => {
          const resource = referencingTable(error)
          if (resource === undefined) throw error
          throw new BerthError('project_not_empty', { resource: resource.replaceAll('_', ' ') }, { cause: error })
        })
      return deleted !== undefined
    })
  }
}

async function updateOne(database: Database, id: ProjectId, columns: Updateable<ProjectTable>) {
  return database
    .updateTable('projects')
    .set(columns)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()
    .catch(refuseTakenName('projects_organization_id_name_key', 'project_name_taken', columns.name ?? ''))
}

/** Serializes changes of one organization. Otherwise two could each take the other project for the last one. */
async function requireOtherActive(database: Database, organizationId: OrganizationId, id: ProjectId): Promise<void> {
  await database
    .selectFrom('organizations')
    .select('id')
    .where('id', '=', organizationId)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow()
  const project = await database.selectFrom('projects').select('archived_at').where('id', '=', id).executeTakeFirst()
  if (!project || project.archived_at) return
  const other = await database
    .selectFrom('projects')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('archived_at', 'is', null)
    .where('id', '<>', id)
    .limit(1)
    .executeTakeFirst()
  if (!other) throw new BerthError('last_active_project')
}
