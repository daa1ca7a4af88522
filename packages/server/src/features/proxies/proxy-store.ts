import type { ProjectId, ProxyId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { type Insertable, sql } from 'kysely'
import type { Database } from '../../database/database.ts'
import { newestPage } from '../../database/newest-page.ts'
import type { ProxyTable } from '../../database/tables.ts'
import { followDeletedProxy } from '../../jobs/declared-jobs.ts'
import type { JobQueue } from '../../jobs/job-runner.ts'
import type { StoredProxy } from './proxy.ts'

export interface ProxyFilter {
  readonly projectId: ProjectId
  readonly text: string | undefined
  readonly name: string | undefined
}

export interface ProxyHealth {
  readonly status: 'available' | 'unavailable'
  readonly lastChecked: Date
  /** Undefined clears the stored address. */
  readonly ipAddress: string | undefined
}

export class ProxyStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async insert(proxy: Omit<Insertable<ProxyTable>, 'name_key'>): Promise<StoredProxy> {
    return this.#database
      .insertInto('proxies')
      .values({ ...proxy, name_key: keyOf(proxy.name) })
      .returningAll()
      .executeTakeFirstOrThrow()
  }

  async find(projectId: ProjectId, id: string): Promise<StoredProxy | undefined> {
    return this.#active(projectId)
      .selectAll()
      .where('id', '=', id as ProxyId)
      .executeTakeFirst()
  }

  /** Two are enough to detect an ambiguous name. */
  async findByName(projectId: ProjectId, name: string): Promise<readonly StoredProxy[]> {
    return this.#active(projectId).selectAll().where('name', '=', name.trim()).limit(2).execute()
  }

  /** Includes deleted proxies. */
  async listByIds(projectId: ProjectId, ids: readonly ProxyId[]): Promise<readonly StoredProxy[]> {
    if (ids.length === 0) return []
    return this.#database
      .selectFrom('proxies')
      .selectAll()
      .where('project_id', '=', projectId)
      .where('id', 'in', ids)
      .execute()
  }

  /** Newest first. */
  async list({ projectId, text, name }: ProxyFilter, page: PageRequest): Promise<Page<StoredProxy>> {
    let query = this.#active(projectId).selectAll()
    if (name !== undefined) query = query.where('name_key', '=', keyOf(name))
    if (text !== undefined) {
      const key = keyOf(text)
      const lowerCase = text.toLowerCase()
      query = query.where(
        sql<boolean>`(strpos(coalesce(name_key, ''), ${key}) > 0
          or strpos(lower(coalesce(config ->> 'host', '')), ${lowerCase}) > 0
          or strpos(coalesce(ip_address, ''), ${lowerCase}) > 0
          or id = ${lowerCase})`,
      )
    }
    return newestPage(query, page)
  }

  async rename(projectId: ProjectId, id: string, name: string): Promise<StoredProxy | undefined> {
    return this.#updateActive(projectId, id)
      .set({ name, name_key: keyOf(name) })
      .returningAll()
      .executeTakeFirst()
  }

  async setHealth(projectId: ProjectId, id: ProxyId, health: ProxyHealth): Promise<StoredProxy | undefined> {
    return this.#updateActive(projectId, id)
      .set({ status: health.status, last_checked: health.lastChecked, ip_address: health.ipAddress ?? null })
      .returningAll()
      .executeTakeFirst()
  }

  /**
   * Of two concurrent deletes, one returns the proxy. Fails for a proxy that an auth connection uses. Removes the
   * secrets immediately. The job that updates its sessions is enqueued in the same transaction.
   */
  async delete(
    projectId: ProjectId,
    id: string,
    now: Date,
    { jobs }: { jobs: JobQueue },
  ): Promise<StoredProxy | undefined> {
    return this.#database.transaction().execute(async (transaction) => {
      const deleted = await this.#updateActive(projectId, id, transaction)
        .where(
          sql<boolean>`not exists (select from auth_connections
            where auth_connections.project_id = proxies.project_id and browser -> 'proxy' ->> 'id' = proxies.id)`,
        )
        .set({ deleted_at: now, sealed_secrets: null })
        .returningAll()
        .executeTakeFirst()
      if (deleted) await jobs.enqueue(followDeletedProxy, { proxyId: deleted.id }, { transaction })
      return deleted
    })
  }

  #active(projectId: ProjectId) {
    return this.#database.selectFrom('proxies').where('project_id', '=', projectId).where('deleted_at', 'is', null)
  }

  #updateActive(projectId: ProjectId, id: string, database = this.#database) {
    return database
      .updateTable('proxies')
      .where('project_id', '=', projectId)
      .where('id', '=', id as ProxyId)
      .where('deleted_at', 'is', null)
  }
}

/**
 * Normalizes names for comparison: case and accents are ignored. Done here, because not every server has a suitable
 * collation.
 */
function keyOf(name: string): string
function keyOf(name: string | null | undefined): string | null
function keyOf(name: string | null | undefined): string | null {
  return name?.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase() ?? null
}
