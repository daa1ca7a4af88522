import type { PoolId } from '@berth/contract/common/ids.ts'
import { sql } from 'kysely'
import type { Database } from '../../../database/database.ts'
import { pooledStates } from '../records/session-state.ts'
import type { Pool } from './pool-store.ts'

/** The pool is full, or the fill rate permits no build now. */
export class NoFreeSlotError extends Error {
  override readonly name = 'NoFreeSlotError'
}

/** How many browsers are missing in pools, according to the rows of their sessions. */
export class FillStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** The pool, if a browser may be built for it now. */
  async findShort(id: PoolId, now: Date): Promise<Pool | undefined> {
    const pool = await this.#database.selectFrom('browser_pools').selectAll().where('id', '=', id).executeTakeFirst()
    return pool && (await countMissing(this.#database, pool)) > 0 && mayBuild(pool, now) ? pool : undefined
  }

  /**
   * Takes a slot for a new browser and inserts its row in one transaction. Concurrent calls wait for each other, so a
   * pool never has more browsers than its size. Rejects with `NoFreeSlotError`.
   */
  async takeSlot<Written>(
    { id, version }: Pool,
    now: Date,
    write: (database: Database) => Promise<Written>,
  ): Promise<Written> {
    return this.#database.transaction().execute(async (database) => {
      const pool = await database
        .selectFrom('browser_pools')
        .selectAll()
        .where('id', '=', id)
        // The configuration of the browser was read before.
        .where('version', '=', version)
        .forNoKeyUpdate()
        .executeTakeFirst()
      if (!pool || (await countMissing(database, pool)) <= 0 || !mayBuild(pool, now)) throw new NoFreeSlotError()
      await database
        .updateTable('browser_pools')
        .set(
          pool.unpaced_builds > 0
            ? { unpaced_builds: pool.unpaced_builds - 1 }
            : { next_build_at: nextBuild(pool, now) },
        )
        .where('id', '=', id)
        .execute()
      return write(database)
    })
  }

  /** Pools with missing browsers that may be built now or later. */
  async listShort(): Promise<readonly PoolId[]> {
    const { rows } = await sql<{ id: PoolId }>`
      select id from browser_pools
      where (fill_rate_per_minute > 0 or unpaced_builds > 0) and size > (${countOf(sql`browser_pools.id`)})`.execute(
      this.#database,
    )
    return rows.map(({ id }) => id)
  }
}

const minuteMilliseconds = 60_000

/** At least one, otherwise the rate would never fill a small pool. */
function buildsPerMinute({ size, fill_rate_per_minute: rate }: Pool): number {
  return Math.max(1, Math.ceil((size * rate) / 100))
}

/** A minute's number of builds may start together. After that, each waits for its share of a minute. */
function mayBuild(pool: Pool, now: Date): boolean {
  if (pool.unpaced_builds > 0) return true
  if (pool.fill_rate_per_minute === 0) return false
  return nextBuild(pool, now).getTime() <= now.getTime() + minuteMilliseconds
}

function nextBuild(pool: Pool, now: Date): Date {
  const from = Math.max(pool.next_build_at?.getTime() ?? 0, now.getTime())
  return new Date(from + minuteMilliseconds / buildsPerMinute(pool))
}

async function countMissing(database: Database, { id, size }: Pool): Promise<number> {
  const { rows } = await sql<{ count: number }>`${countOf(sql`${id}`)}`.execute(database)
  return size - (rows[0]?.count ?? 0)
}

function countOf(pool: ReturnType<typeof sql>) {
  return sql`select count(*)::int as count from sessions
    where sessions.pool_id = ${pool} and sessions.state in (${sql.join(pooledStates)})`
}
