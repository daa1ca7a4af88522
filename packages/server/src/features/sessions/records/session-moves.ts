import type { MachineId, PoolId, SessionId } from '@berth/contract/common/ids.ts'
import { sql } from 'kysely'
import type { Database } from '../../../database/database.ts'

/**
 * Machines of a server without a heartbeat may still be in use: a busy process can be late by more than one heartbeat.
 */
const abandonedAfterSeconds = 60

interface SessionMovesOptions {
  readonly database: Database
  /** When servers count each other as gone. */
  readonly limits: {
    readonly pauseSeconds: number
    readonly lostAfterSeconds: number
    readonly witnessSeconds: number
  }
  readonly serverId: string
  /** Sessions move only between servers of one driver. */
  readonly driverName: string
}

export interface MovedSession {
  readonly id: SessionId
  readonly driver_id: string
  readonly pool_id: PoolId | null
}

/**
 * Assigns sessions to servers when every server can reach every machine. A move is one statement, and moved sessions
 * are distributed evenly over the present servers.
 */
export class SessionMoves {
  readonly #options: SessionMovesOptions

  constructor(options: SessionMovesOptions) {
    this.#options = options
  }

  /** Moves all sessions of lost servers to present ones. */
  async moveFromGone(): Promise<readonly MovedSession[]> {
    const { driverName, serverId, limits } = this.#options
    return this.#move(sql`
      select id from servers where driver = ${driverName} and id <> ${serverId} and (left_at is not null
        or seen_at < now() - make_interval(secs => ${limits.lostAfterSeconds}) and exists (
          select from servers where id = ${serverId}
            and seen_at >= now() - make_interval(secs => ${limits.pauseSeconds})
            and up_since < now() - make_interval(secs => ${limits.witnessSeconds})))`)
  }

  /** Moves the usable sessions of this server if there is another one. Sessions in transition stay. */
  async moveToOthers(): Promise<readonly MovedSession[]> {
    return this.#move(
      sql`select id from servers where id = ${this.#options.serverId}`,
      sql`and state in ('active', 'idle')`,
    )
  }

  #isThere() {
    const { driverName, limits } = this.#options
    return sql`driver = ${driverName} and left_at is null
      and seen_at >= now() - make_interval(secs => ${limits.lostAfterSeconds})`
  }

  async #move(from: ReturnType<typeof sql>, condition = sql``): Promise<readonly MovedSession[]> {
    const { rows } = await sql<MovedSession>`
      with takers as (
        select id, row_number() over (order by sessions, id) - 1 as place, count(*) over () as total
        from servers where ${this.#isThere()} and draining_since is null
      ),
      stranded as (
        select id, row_number() over (order by id) - 1 as place from (
          select id from sessions
          where driver_id in (${from}) and state <> 'deleted' ${condition} and exists (select from takers)
          for update skip locked
        ) as locked
      )
      update sessions set driver_id = takers.id
      from stranded join takers on stranded.place % takers.total = takers.place
      where sessions.id = stranded.id
      returning sessions.id, sessions.driver_id, sessions.pool_id`.execute(this.#options.database)
    return rows
  }

  /** The servers that have had no heartbeat for a minute or have stopped, and those without a row. */
  async listAbandoned(servers: readonly string[]): Promise<ReadonlySet<string>> {
    const { rows } = await sql<{ id: string }>`
      select id from unnest(${[...servers]}::text[]) as named (id) where not exists (
        select from servers where servers.id = named.id and left_at is null
          and seen_at >= now() - make_interval(secs => ${abandonedAfterSeconds}))`.execute(this.#options.database)
    return new Set(rows.map(({ id }) => id))
  }

  /** The machines of unfinished sessions, out of these. */
  async listNamed(machines: readonly MachineId[]): Promise<ReadonlySet<MachineId>> {
    const { rows } = await sql<{ machine_id: MachineId }>`
      select machine_id from sessions where state <> 'deleted' and machine_id = any(${[...machines]}::text[])`.execute(
      this.#options.database,
    )
    return new Set(rows.map(({ machine_id }) => machine_id))
  }

  /** Nobody can claim the reserve of such a server. */
  async forgetReserves(servers: ReadonlySet<string>): Promise<void> {
    await sql`delete from reserve_machines where driver_id = any(${[...servers]}::text[])`.execute(
      this.#options.database,
    )
  }
}
