import type { PoolId, SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { type RawBuilder, sql } from 'kysely'
import { type Database, violates } from '../../../database/database.ts'
import type { Session } from '../records/session.ts'
import { pooledStates } from '../records/session-state.ts'
import type { Lease } from './lease.ts'
import { isListening } from './pool-signals.ts'

/** The prospects of a caller that gets no browser. */
interface QueueState {
  readonly exists: boolean
  /** Ready browsers, all of which are for earlier callers. */
  readonly free: number
}

export interface ReturningSession {
  readonly session: Session
  /** Whether the lease has changed settings that must be restored in the running session. */
  readonly isChanged: boolean
}

/** The rows of leases: waiting callers, leased browsers, and browsers that are being returned. */
export class LeaseStore {
  readonly #database: Database
  readonly #serverId: string

  constructor(database: Database, serverId: string) {
    this.#database = database
    this.#serverId = serverId
  }

  /** Removes the waiting callers of an earlier run of this server. Call before anyone waits here. */
  async forgetOwnWaiters(): Promise<void> {
    await this.#database.deleteFrom('pool_waiters').where('server_id', '=', this.#serverId).execute()
  }

  /** Removes the waiting callers of servers that are gone. */
  async forgetLostWaiters(): Promise<void> {
    await sql`
      delete from pool_waiters where server_id <> ${this.#serverId} and not ${isListening(sql`server_id`)}`.execute(
      this.#database,
    )
  }

  /** Adds a caller to the end of the queue. */
  async addWaiter(pool: PoolId): Promise<number> {
    const { ticket } = await this.#database
      .insertInto('pool_waiters')
      .values({ pool_id: pool, server_id: this.#serverId })
      .returning('ticket')
      .executeTakeFirstOrThrow()
      .catch((error: unknown) => {
        if (!violates(error, 'pool_waiters_pool_id_fkey')) throw error
        throw new BerthError('pool_not_found', { pool }, { cause: error })
      })
    return ticket
  }

  async removeWaiter(ticket: number): Promise<void> {
    await this.#database.deleteFrom('pool_waiters').where('ticket', '=', ticket).execute()
  }

  /**
   * Leases a ready browser, unless all ready ones are for earlier callers: those with a smaller ticket, or all waiting
   * ones if the caller has no ticket. One statement, which also removes the caller from the queue: of several
   * concurrent callers, one gets the browser.
   */
  async claim(pool: PoolId, { name, tags }: Lease, now: Date, ticket: number | null): Promise<Session | undefined> {
    const { rows } = await sql<Session>`
      with pool as materialized (
        -- A pool that is being deleted is waited for: its browsers go with it.
        select id, (config ->> 'timeout_seconds')::int as timeout_seconds from browser_pools where id = ${pool} for key share
      ),
      browser as materialized (
        select sessions.id, pool.timeout_seconds from sessions, pool
        where ${this.#isReady(pool)}
          and (${this.#countEarlier(pool, ticket)}) < (
            select count(*) from sessions, pool where ${this.#isReady(pool)}
          )
        order by driver_id = ${this.#serverId} desc, sessions.created_at
        limit 1
        for update of sessions skip locked
      ),
      served as (
        delete from pool_waiters where ticket = ${ticket}::bigint and exists (select from browser)
      )
      update sessions
      set state = 'active', name = ${name}, tags = ${JSON.stringify(tags)}::jsonb, leased_at = ${now},
        idle_since = ${now}, timeout_seconds = browser.timeout_seconds, lease_number = lease_number + 1
      from browser where sessions.id = browser.id and state = 'idle'
      returning sessions.*`
      .execute(this.#database)
      .catch((error: unknown) => {
        if (!violates(error, 'session_names')) throw error
        throw new BerthError('session_name_taken', { name: name ?? '' }, { cause: error })
      })
    return rows[0]
  }

  async queueState(pool: PoolId): Promise<QueueState> {
    const { rows } = await sql<QueueState>`
      select exists (select from browser_pools where id = ${pool}) as exists,
        (select count(*) from sessions where ${this.#isReady(pool)})::int as free`.execute(this.#database)
    return rows[0] ?? { exists: false, free: 0 }
  }

  /** Starts the return of a leased browser that is to be reused. Undefined if it is not leased from the pool. */
  async beginReturn(pool: PoolId, id: SessionId, leaseNumber?: number): Promise<Session | undefined> {
    return this.#database
      .updateTable('sessions')
      .set({ state: 'returning', name: null, tags: '{}', leased_at: null })
      .where('id', '=', id)
      .where('pool_id', '=', pool)
      .where('state', '=', 'active')
      .$if(leaseNumber !== undefined, (query) => query.where('lease_number', '=', leaseNumber as number))
      .returningAll()
      .executeTakeFirst()
  }

  /** Ends a leased browser. Undefined if it is not leased from the pool. */
  async beginEnd(pool: PoolId, id: SessionId, now: Date): Promise<Session | undefined> {
    return this.#database
      .updateTable('sessions')
      .set({ state: 'ending', deleted_at: now, end_reason: 'released' })
      .where('id', '=', id)
      .where('pool_id', '=', pool)
      .where('state', '=', 'active')
      .returningAll()
      .executeTakeFirst()
  }

  /** A session of this server that is being returned. */
  async findReturning(id: SessionId): Promise<ReturningSession | undefined> {
    const { rows } = await sql<Session & { is_changed: boolean }>`
      select *, (proxy, coalesce(network, 'null'), coalesce(telemetry, 'null')) is distinct from (
        pool_defaults -> 'proxy', coalesce(pool_defaults -> 'network', 'null'),
        coalesce(pool_defaults -> 'telemetry', 'null')) as is_changed
      from sessions where id = ${id} and state = 'returning'`.execute(this.#database)
    const [row] = rows
    if (!row) return undefined
    const { is_changed: isChanged, ...session } = row
    return { session, isChanged }
  }

  /** Restores the settings of the pool in the row of a browser that is being returned. */
  async restoreDefaults(id: SessionId): Promise<Session | undefined> {
    const { rows } = await sql<Session>`
      update sessions set proxy = pool_defaults -> 'proxy', network = nullif(pool_defaults -> 'network', 'null'),
        telemetry = nullif(pool_defaults -> 'telemetry', 'null')
      where id = ${id} and state = 'returning' returning *`.execute(this.#database)
    return rows[0]
  }

  /** Marks it as ready for the next caller, or ends it if its pool has become smaller meanwhile. */
  async finishReturn(pool: PoolId, id: SessionId, now: Date): Promise<void> {
    await this.#database.transaction().execute(async (database) => {
      // Of two browsers that return to a pool that is too large by one, one stays.
      await sql`select from browser_pools where id = ${pool} for no key update`.execute(database)
      await sql`
        with fit as (
          select size >= (
            select count(*) from sessions where pool_id = ${pool} and state in (${sql.join(pooledStates)})
          ) as is_given from browser_pools where id = ${pool}
        )
        update sessions
        set state = case when is_given then 'idle' else 'ending' end,
          deleted_at = case when is_given then null else ${now}::timestamptz end
        from fit where id = ${id} and state = 'returning'`.execute(database)
    })
  }

  /** A browser of a server that is away cannot be leased, because nobody could use it. */
  #isReady(pool: PoolId): RawBuilder<boolean> {
    return sql<boolean>`sessions.pool_id = ${pool} and sessions.state = 'idle'
      and (sessions.driver_id = ${this.#serverId} or ${isListening(sql`sessions.driver_id`)})`
  }

  #countEarlier(pool: PoolId, ticket: number | null): RawBuilder<number> {
    return sql<number>`select count(*) from pool_waiters
      where pool_waiters.pool_id = ${pool} and (${ticket}::bigint is null or pool_waiters.ticket < ${ticket}::bigint)
        and (pool_waiters.server_id = ${this.#serverId} or ${isListening(sql`pool_waiters.server_id`)})`
  }
}
