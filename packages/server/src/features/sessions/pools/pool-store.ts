import type { PoolId, ProfileId, ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely'
import { type Database, violates } from '../../../database/database.ts'
import { hasId, hasIdOrName } from '../../../database/id-or-name.ts'
import { newestPage } from '../../../database/newest-page.ts'
import { plainLowerCase } from '../../../database/plain-lower-case.ts'
import type { PoolTable } from '../../../database/tables.ts'
import { pooledStates } from '../records/session-state.ts'

export type Pool = Selectable<PoolTable>

/** A pool with the numbers of its browsers, counted by their rows. */
export type CountedPool = Pool & { readonly available: number; readonly acquired: number }

export interface PoolFilter {
  readonly projectId: ProjectId
  readonly text: string | undefined
  readonly name: string | undefined
}

/** Pools and the numbers of their browsers. The rows of the sessions are the only counter. */
export class PoolStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async insert(pool: Insertable<PoolTable>, database: Database): Promise<Pool> {
    return database
      .insertInto('browser_pools')
      .values(pool)
      .returningAll()
      .executeTakeFirstOrThrow()
      .catch((error: unknown) => throwRefused(error, pool))
  }

  /** Finds by id or, if there is none, by name. */
  async find(projectId: ProjectId, idOrName: string): Promise<CountedPool | undefined> {
    return this.#counted()
      .where('project_id', '=', projectId)
      .where(hasIdOrName(idOrName))
      .orderBy(hasId(idOrName), 'desc')
      .executeTakeFirst()
  }

  async findById(id: PoolId): Promise<CountedPool | undefined> {
    return this.#counted().where('id', '=', id).executeTakeFirst()
  }

  /** Newest first. */
  async list({ projectId, text, name }: PoolFilter, page: PageRequest): Promise<Page<CountedPool>> {
    let query = this.#counted().where('project_id', '=', projectId)
    if (text) {
      query = query.where(sql<boolean>`(strpos(lower(coalesce(name, '')), ${text.toLowerCase()}) > 0 or id = ${text})`)
    }
    if (name) query = query.where(sql<boolean>`lower(name) = ${plainLowerCase(name)}`)
    return newestPage(query, page)
  }

  /** The names of pools, for the records of their sessions. Deleted pools and those without a name are missing. */
  async namesOf(ids: readonly PoolId[]): Promise<ReadonlyMap<PoolId, string>> {
    if (ids.length === 0) return new Map()
    const rows = await this.#database
      .selectFrom('browser_pools')
      .select(['id', 'name'])
      .where('id', 'in', ids)
      .execute()
    return new Map(rows.flatMap(({ id, name }) => (name === null ? [] : [[id, name] as const])))
  }

  /** Changes the pool if it is unchanged since it was read. Undefined otherwise, or if it is gone. */
  async update({ id, version }: Pool, columns: Updateable<PoolTable>, database: Database): Promise<Pool | undefined> {
    return database
      .updateTable('browser_pools')
      .set({ ...columns, version: version + 1 })
      .where('id', '=', id)
      .where('version', '=', version)
      .returningAll()
      .executeTakeFirst()
      .catch((error: unknown) => throwRefused(error, columns))
  }

  /** Ends every browser of the pool that is not leased. Returns whether the pool exists. */
  async flush(id: PoolId, now: Date): Promise<boolean> {
    return this.#database.transaction().execute(async (database) => {
      // From here on, nothing is built from an earlier configuration, and builds in progress are found.
      const pool = await database
        .updateTable('browser_pools')
        .set({ version: sql<number>`version + 1` })
        .where('id', '=', id)
        .returning('id')
        .executeTakeFirst()
      if (pool) await this.endUnleased(id, now, database)
      return pool !== undefined
    })
  }

  /** Ends the browsers that are not leased and returns their number. The pool's row must be locked. */
  async endUnleased(id: PoolId, now: Date, database: Database): Promise<number> {
    const ended = await database
      .updateTable('sessions')
      .set({ state: 'ending', deleted_at: now })
      .where('pool_id', '=', id)
      .where('state', 'in', ['starting', 'idle'])
      .returning('id')
      .execute()
    return ended.length
  }

  /** Ends unleased browsers beyond the size of the pool. The pool's row must be locked. */
  async endSurplus({ id, size }: Pool, now: Date, database: Database): Promise<void> {
    await sql`
      update sessions set state = 'ending', deleted_at = ${now}
      where id in (
        select id from sessions where pool_id = ${id} and state in ('starting', 'idle')
        -- What is not ready is the least loss.
        order by state = 'starting' desc, created_at
        limit greatest(0, (
          select count(*) from sessions where pool_id = ${id} and state in (${sql.join(pooledStates)})
        ) - ${size})
      ) and state in ('starting', 'idle')`.execute(database)
  }

  /** Exempts this many further builds from the fill rate. */
  async allowBuilds(id: PoolId, builds: number, database: Database): Promise<void> {
    await database
      .updateTable('browser_pools')
      .set({ unpaced_builds: sql<number>`unpaced_builds + ${builds}` })
      .where('id', '=', id)
      .execute()
  }

  /** The pools whose ready browsers started with an older state of the profile and must be replaced. */
  async listRefreshedBy(profileId: ProfileId): Promise<readonly PoolId[]> {
    const rows = await this.#database
      .selectFrom('browser_pools')
      .select('id')
      .where('profile_id', '=', profileId)
      .where('refresh_on_profile_update', '=', true)
      .execute()
    return rows.map(({ id }) => id)
  }

  /**
   * Removes the pool and ends its browsers. While some are leased, does nothing unless forced, and returns the number
   * of leases. Undefined if the pool is already gone.
   */
  async delete(id: PoolId, force: boolean, now: Date): Promise<{ readonly leases: number } | undefined> {
    return this.#database.transaction().execute(async (database) => {
      // Builds and leases of its browsers wait for this statement, or this one for them.
      const pool = await database
        .selectFrom('browser_pools')
        .select('id')
        .where('id', '=', id)
        .forUpdate()
        .executeTakeFirst()
      if (!pool) return undefined
      const { leases } = await database
        .selectFrom('sessions')
        .select(({ fn }) => fn.countAll<number>().as('leases'))
        .where('pool_id', '=', id)
        .where('state', '=', 'active')
        .executeTakeFirstOrThrow()
      if (leases > 0 && !force) return { leases }
      await database
        .updateTable('sessions')
        .set({ state: 'ending', deleted_at: now })
        .where('pool_id', '=', id)
        .where('state', 'in', pooledStates)
        .execute()
      await database.deleteFrom('browser_pools').where('id', '=', id).execute()
      return { leases: 0 }
    })
  }

  #counted() {
    const count = (condition: ReturnType<typeof sql<boolean>>) =>
      sql<number>`(select count(*) from sessions where sessions.pool_id = browser_pools.id and ${condition})`
    return this.#database
      .selectFrom('browser_pools')
      .selectAll()
      .select([count(sql`state = 'idle'`).as('available'), count(sql`state = 'active'`).as('acquired')])
  }
}

function throwRefused(error: unknown, { name, profile_id }: Updateable<PoolTable>): never {
  if (violates(error, 'browser_pool_names'))
    throw new BerthError('pool_name_taken', { name: name ?? '' }, { cause: error })
  // It was deleted since it was looked up.
  if (violates(error, 'browser_pools_profile_id_fkey')) {
    throw new BerthError('profile_not_found', { profile: profile_id ?? '' }, { cause: error })
  }
  throw error
}
