import type { MachineId, PoolId, SessionId } from '@berth/contract/common/ids.ts'
import { sql } from 'kysely'
import type { Database } from '../../../database/database.ts'

/** Whose machines may be in use, though nobody tells of them: a busy process can be late by more than a heartbeat. */
const abandonedAfterSeconds = 60

interface SessionMovesOptions {
  readonly database: Database
  /** When servers take each other for gone. */
  readonly limits: {
    readonly pauseSeconds: number
    readonly lostAfterSeconds: number
    readonly witnessSeconds: number
  }
  readonly serverId: string
  /** Sessions move between servers of one driver. */
  readonly driverName: string
}

export interface MovedSession {
  readonly id: SessionId
  readonly driver_id: string
  readonly pool_id: PoolId | null
}

/**
 * Which server serves a session, where every server reaches every machine. A move is one statement, and the servers that
 * are there share what is moved evenly.
 */
export class SessionMoves {
  readonly #options: SessionMovesOptions

  constructor(options: SessionMovesOptions) {
    this.#options = options
  }

  /** Moves all that belongs to servers that are gone to those that are there. */
  async moveFromGone(): Promise<readonly MovedSession[]> {
    const { driverName, serverId, limits } = this.#options
    return this.#move(sql`
      select id from servers where driver = ${driverName} and id <> ${serverId} and (left_at is not null
        or seen_at < now() - make_interval(secs => ${limits.lostAfterSeconds}) and exists (
          select from servers where id = ${serverId}
            and seen_at >= now() - make_interval(secs => ${limits.pauseSeconds})
            and up_since < now() - make_interval(secs => ${limits.witnessSeconds})))`)
  }

  /** Moves the sessions of this server that can be used, if there is another server. What is under way stays. */
  async giveAway(): Promise<readonly MovedSession[]> {
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

  /** The servers that nobody has heard of for a minute, or that have ended, and those that are forgotten. */
  async listAbandoned(servers: readonly string[]): Promise<ReadonlySet<string>> {
    const { rows } = await sql<{ id: string }>`
      select id from unnest(${[...servers]}::text[]) as named (id) where not exists (
        select from servers where servers.id = named.id and left_at is null
          and seen_at >= now() - make_interval(secs => ${abandonedAfterSeconds}))`.execute(this.#options.database)
    return new Set(rows.map(({ id }) => id))
  }

  /** Of these machines, those that an unfinished session has. */
  async listNamed(machines: readonly MachineId[]): Promise<ReadonlySet<MachineId>> {
    const { rows } = await sql<{ machine_id: MachineId }>`
      select machine_id from sessions where state <> 'deleted' and machine_id = any(${[...machines]}::text[])`.execute(
      this.#options.database,
    )
    return new Set(rows.map(({ machine_id }) => machine_id))
  }

  /** Nobody can claim what the reserve of such a server has left. */
  async forgetReserves(servers: ReadonlySet<string>): Promise<void> {
    await sql`delete from reserve_machines where driver_id = any(${[...servers]}::text[])`.execute(
      this.#options.database,
    )
  }
}
