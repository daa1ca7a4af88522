import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../../database/database.ts'

/** When servers count each other as gone. */
export interface ServerLimits {
  /** The interval of heartbeats. */
  readonly heartbeatSeconds: number
  /** After a longer gap between heartbeats, a server counts as having been away. */
  readonly pauseSeconds: number
  /** A server without a heartbeat for this long is gone. */
  readonly lostAfterSeconds: number
  /**
   * How long a server must have run without a gap before it counts others as gone: after an outage of the database no
   * server has a recent heartbeat, and those that run need a moment to record one.
   */
  readonly witnessSeconds: number
}

/** The sessions of a lost server end with it. */
export const limitsOfHosts: ServerLimits = {
  heartbeatSeconds: 10,
  pauseSeconds: 30,
  lostAfterSeconds: 60,
  witnessSeconds: 90,
}

/** Another server takes over the sessions of a lost one, and until then they are unavailable. */
export const limitsOfSharedMachines: ServerLimits = {
  heartbeatSeconds: 1,
  pauseSeconds: 5,
  lostAfterSeconds: 8,
  witnessSeconds: 10,
}

/** A server that returns later than this counts as new. */
const forgottenAfterDays = 7

/** What a server reports about itself. */
export interface ServerReport {
  /** The address for other servers. Null if there are none. */
  readonly address: string | null
  readonly driver: string
  readonly keyCheck: string
  readonly sessions: number
  readonly freeSessions: number | null
  readonly freeMemoryBytes: number | null
  /** Whether it is about to stop and accepts no new sessions. */
  readonly isDraining: boolean
}

export interface KnownServer {
  readonly id: string
  readonly address: string | null
  readonly keyCheck: string | null
}

/** The servers that share the database. */
export class ServerStore {
  readonly #database: Database
  readonly limits: ServerLimits

  constructor(database: Database, limits = limitsOfHosts) {
    this.#database = database
    this.limits = limits
  }

  /** Records a heartbeat. */
  async tell(id: string, report: ServerReport): Promise<void> {
    const { address, driver, keyCheck, sessions, freeSessions, freeMemoryBytes, isDraining } = report
    const drainingSince = isDraining ? sql`now()` : sql`null::timestamptz`
    await sql`
      insert into servers (id, up_since, seen_at, address, driver, key_check, sessions, free_sessions, free_memory_bytes,
        draining_since)
      values (${id}, now(), now(), ${address}, ${driver}, ${keyCheck}, ${sessions}, ${freeSessions}, ${freeMemoryBytes},
        ${drainingSince})
      on conflict (id) do update set seen_at = now(),
        up_since = case
          when servers.seen_at < now() - make_interval(secs => ${this.limits.pauseSeconds}) then now()
          else servers.up_since
        end,
        address = excluded.address, driver = excluded.driver, key_check = excluded.key_check,
        sessions = excluded.sessions, free_sessions = excluded.free_sessions,
        free_memory_bytes = excluded.free_memory_bytes, left_at = null,
        draining_since = case when excluded.draining_since is null then null
          else coalesce(servers.draining_since, excluded.draining_since) end`.execute(this.#database)
  }

  /** Records that the server has stopped, so that others do not have to wait. */
  async leave(id: string): Promise<void> {
    await this.#database.updateTable('servers').set({ left_at: sql<Date>`now()` }).where('id', '=', id).execute()
  }

  /** The servers that are not gone. */
  async listPresent(): Promise<readonly KnownServer[]> {
    const rows = await this.#database
      .selectFrom('servers')
      .select(['id', 'address', 'key_check'])
      .where(this.#isThere)
      .orderBy('id')
      .execute()
    return rows.map(({ id, address, key_check }) => ({ id, address, keyCheck: key_check }))
  }

  /** The other server with the most room for a session, according to the latest heartbeats. */
  async findRoom(except: string): Promise<string | undefined> {
    const found = await this.#database
      .selectFrom('servers')
      .select('id')
      .where('id', '!=', except)
      .where('address', 'is not', null)
      .where(this.#isThere)
      .where('draining_since', 'is', null)
      .where(sql<boolean>`coalesce(free_sessions, 1) > 0`)
      .orderBy(sql`free_memory_bytes desc nulls last`)
      .limit(1)
      .executeTakeFirst()
    return found?.id
  }

  get #isThere() {
    return sql<boolean>`left_at is null and seen_at >= now() - make_interval(secs => ${this.limits.lostAfterSeconds})`
  }

  /**
   * Ends the sessions of lost servers in the database, and returns their number. They end at the time of their server's
   * last heartbeat. If the server returns, it stops their machines.
   */
  async endLostSessions(witness: string): Promise<number> {
    const { rows } = await sql`
      with lost as (${this.#lost(witness)}),
      removed as (
        delete from sessions using lost where driver_id = lost.id and state = 'starting'
      ),
      ended as (
        select sessions.id, coalesce(deleted_at, greatest(lost.seen_at, created_at)) as at
        from sessions join lost on driver_id = lost.id
        where state in ('idle', 'active', 'returning', 'ending')
        for update of sessions
      )
      update sessions
      set state = 'deleted', deleted_at = ended.at, uptime_ms = awake_milliseconds(sessions, ended.at),
        end_reason = case when deleted_at is null then 'server_lost' else end_reason end
      from ended where sessions.id = ended.id
      returning sessions.id`.execute(this.#database)
    return rows.length
  }

  /** The ids of lost servers. */
  async listLost(witness: string): Promise<readonly string[]> {
    const { rows } = await this.#lost(witness).execute(this.#database)
    return rows.map(({ id }) => id)
  }

  /** The servers without a recent heartbeat, if the witness, with the same driver, has had regular ones. */
  #lost(witness: string): RawBuilder<{ readonly id: string; readonly seen_at: Date }> {
    const { pauseSeconds, lostAfterSeconds, witnessSeconds } = this.limits
    return sql`
      select id, seen_at from servers
      where seen_at < now() - make_interval(secs => ${lostAfterSeconds})
        and driver is not distinct from (select driver from servers where id = ${witness})
        and exists (
          select from servers where id = ${witness}
            and seen_at >= now() - make_interval(secs => ${pauseSeconds})
            and up_since < now() - make_interval(secs => ${witnessSeconds})
        )`
  }

  /** Removes servers without a heartbeat for days that have no sessions left, because hosts may be temporary. */
  async forgetGone(): Promise<void> {
    await sql`
      delete from servers where seen_at < now() - make_interval(days => ${forgottenAfterDays})
        and not exists (select from sessions where driver_id = servers.id and state <> 'deleted')`.execute(
      this.#database,
    )
  }
}
