import type { AuthConnectionId, OrganizationId, ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely'
import type { Database } from '../../database/database.ts'
import { pageOf } from '../../database/newest-page.ts'
import type { AuthConnectionTable } from '../../database/tables.ts'
import { cancel, type StoredFlow } from './flows/flow-store.ts'

/** A connection with the current state of the resources it refers to. */
export type StoredConnection = Selectable<AuthConnectionTable> & {
  readonly organization_id: OrganizationId
  readonly credential_name: string | null
  readonly credential_version: number | null
  readonly has_totp: boolean
  readonly provider_name: string | null
}

export interface ConnectionFilter {
  readonly projectId: ProjectId
  readonly profileName: string | undefined
  readonly domain: string | undefined
  readonly text: string | undefined
}

export class ConnectionStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** The unique index decides between concurrent inserts for one profile and site. */
  async insert(connection: Insertable<AuthConnectionTable>, database = this.#database): Promise<void> {
    const made = await database
      .insertInto('auth_connections')
      .values(connection)
      .onConflict((conflict) => conflict.columns(['project_id', 'profile_name', 'domain']).doNothing())
      .returning('id')
      .executeTakeFirst()
    if (made) return
    const { project_id, profile_name: profile, domain } = connection
    const existing = await database
      .selectFrom('auth_connections')
      .select('id')
      .where('project_id', '=', project_id)
      .where('profile_name', '=', profile)
      .where('domain', '=', domain)
      .executeTakeFirst()
    // It was deleted in between.
    if (!existing) return this.insert(connection, database)
    throw new BerthError('auth_connection_exists', { profile, domain }, { existingId: existing.id })
  }

  async find(projectId: ProjectId, id: string): Promise<StoredConnection | undefined> {
    return this.#select()
      .where('auth_connections.project_id', '=', projectId)
      .where('auth_connections.id', '=', id as AuthConnectionId)
      .executeTakeFirst()
  }

  async findById(id: AuthConnectionId): Promise<StoredConnection | undefined> {
    return this.#select().where('auth_connections.id', '=', id).executeTakeFirst()
  }

  /** Newest first. */
  async list(
    { projectId, profileName, domain, text }: ConnectionFilter,
    page: PageRequest,
  ): Promise<Page<StoredConnection>> {
    let query = this.#select()
      .where('auth_connections.project_id', '=', projectId)
      .orderBy('auth_connections.created_at', 'desc')
      .orderBy('auth_connections.id', 'desc')
    if (profileName !== undefined) query = query.where('profile_name', '=', profileName)
    if (domain !== undefined) query = query.where('auth_connections.domain', '=', domain.toLowerCase())
    if (text !== undefined) {
      const part = text.toLowerCase()
      query = query.where(
        sql<boolean>`(strpos(lower(profile_name), ${part}) > 0 or strpos(auth_connections.domain, ${part}) > 0
          or auth_connections.id = ${part})`,
      )
    }
    return pageOf(query, page)
  }

  #select() {
    return this.#database
      .selectFrom('auth_connections')
      .innerJoin('projects', 'projects.id', 'auth_connections.project_id')
      .leftJoin('credentials', 'credentials.id', 'auth_connections.credential_id')
      .leftJoin('credential_providers', 'credential_providers.id', 'auth_connections.credential_provider_id')
      .selectAll('auth_connections')
      .select([
        'projects.organization_id',
        'credentials.name as credential_name',
        'credentials.version as credential_version',
        sql<boolean>`credentials.totp is not null`.as('has_totp'),
        'credential_providers.name as provider_name',
      ])
  }

  async update(projectId: ProjectId, id: string, columns: Updateable<AuthConnectionTable>): Promise<boolean> {
    const updated = await this.#database
      .updateTable('auth_connections')
      .set(({ eb }) => ({ ...columns, version: eb('version', '+', 1) }))
      .where('project_id', '=', projectId)
      .where('id', '=', id as AuthConnectionId)
      .returning('id')
      .executeTakeFirst()
    return updated !== undefined
  }

  /** Stores changes that the service itself makes. */
  async note(id: AuthConnectionId, columns: Updateable<AuthConnectionTable>): Promise<void> {
    await this.#database.updateTable('auth_connections').set(columns).where('id', '=', id).execute()
  }

  /**
   * Deletes the connection with its flows, and returns the flow that was in progress. Of two concurrent deletes, one
   * returns the connection.
   */
  async delete(
    projectId: ProjectId,
    id: string,
    now: Date,
  ): Promise<{ readonly canceled: StoredFlow | undefined } | undefined> {
    return this.#database.transaction().execute(async (database) => {
      const connection = await database
        .selectFrom('auth_connections')
        .select('id')
        .where('project_id', '=', projectId)
        .where('id', '=', id as AuthConnectionId)
        .forUpdate()
        .executeTakeFirst()
      if (!connection) return undefined
      const canceled = await cancel(database, connection.id, now)
      await database.deleteFrom('auth_connections').where('id', '=', connection.id).execute()
      return { canceled }
    })
  }

  /** Claims the connections whose check is due by scheduling their next check. */
  async takeDue(now: Date, limit: number): Promise<readonly AuthConnectionId[]> {
    const { rows } = await sql<{ id: AuthConnectionId }>`
      update auth_connections
      set next_check_at = ${now}::timestamptz + make_interval(secs => health_check_interval)
      where id in (
        select id from auth_connections where next_check_at <= ${now}
        order by next_check_at limit ${limit} for update skip locked
      )
      returning id`.execute(this.#database)
    return rows.map(({ id }) => id)
  }
}
