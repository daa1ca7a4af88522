import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../../database/database.ts'

/** A server that told later than this after the last time was away meanwhile. */
const pauseSeconds = 30
/** A server that has not told for so long is gone. */
const lostAfterSeconds = 60
/**
 * So long must a server have been up without a pause before it takes others for gone: after a time without a database
 * none of them has told, and those that are there need a moment to say so.
 */
const witnessSeconds = 90
/** A server that comes back later than this is a new one to the others. */
const forgottenAfterDays = 7

/** What a server tells of itself. */
export interface ServerReport {
  /** Where the others reach it; null when it uses the database alone. */
  readonly address: string | null
  readonly driver: string
  readonly keyCheck: string
  readonly sessions: number
  readonly freeSessions: number | null
  readonly freeMemoryBytes: number | null
}

export interface KnownServer {
  readonly id: string
  readonly address: string | null
  readonly keyCheck: string | null
}

/** Which servers share the database. */
export class ServerStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Says that the server is there. */
  async tell(id: string, report: ServerReport): Promise<void> {
    const { address, driver, keyCheck, sessions, freeSessions, freeMemoryBytes } = report
    await sql`
      insert into servers (id, up_since, seen_at, address, driver, key_check, sessions, free_sessions, free_memory_bytes)
      values (${id}, now(), now(), ${address}, ${driver}, ${keyCheck}, ${sessions}, ${freeSessions}, ${freeMemoryBytes})
      on conflict (id) do update set seen_at = now(),
        up_since = case
          when servers.seen_at < now() - make_interval(secs => ${pauseSeconds}) then now()
          else servers.up_since
        end,
        address = excluded.address, driver = excluded.driver, key_check = excluded.key_check,
        sessions = excluded.sessions, free_sessions = excluded.free_sessions,
        free_memory_bytes = excluded.free_memory_bytes`.execute(this.#database)
  }

  /** The servers that have told in the last minute. */
  async listPresent(): Promise<readonly KnownServer[]> {
    const rows = await this.#database
      .selectFrom('servers')
      .select(['id', 'address', 'key_check'])
      .where(sql<boolean>`seen_at >= now() - make_interval(secs => ${lostAfterSeconds})`)
      .orderBy('id')
      .execute()
    return rows.map(({ id, address, key_check }) => ({ id, address, keyCheck: key_check }))
  }

  /** The other server with the most room for a session, by what each has told last. */
  async findRoom(except: string): Promise<string | undefined> {
    const found = await this.#database
      .selectFrom('servers')
      .select('id')
      .where('id', '!=', except)
      .where('address', 'is not', null)
      .where(sql<boolean>`seen_at >= now() - make_interval(secs => ${lostAfterSeconds})`)
      .where(sql<boolean>`coalesce(free_sessions, 1) > 0`)
      .orderBy(sql`free_memory_bytes desc nulls last`)
      .limit(1)
      .executeTakeFirst()
    return found?.id
  }

  /**
   * Ends the sessions of the servers that are gone, as far as the database goes, and tells how many: their time ends
   * when their server was last seen. Their machines are ended by their server, should it come back.
   */
  async endLostSessions(witness: string): Promise<number> {
    const { rows } = await sql`
      with lost as (${lostServers(witness)}),
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

  /** The ids of the servers that are gone. */
  async listLost(witness: string): Promise<readonly string[]> {
    const { rows } = await lostServers(witness).execute(this.#database)
    return rows.map(({ id }) => id)
  }

  /** Hosts come and go: removes servers that nobody has heard of for days, and that have no sessions left. */
  async forgetGone(): Promise<void> {
    await sql`
      delete from servers where seen_at < now() - make_interval(days => ${forgottenAfterDays})
        and not exists (select from sessions where driver_id = servers.id and state <> 'deleted')`.execute(
      this.#database,
    )
  }
}

/** Those that have not told for long, when the witness has told all the time. */
function lostServers(witness: string): RawBuilder<{ readonly id: string; readonly seen_at: Date }> {
  return sql`
    select id, seen_at from servers
    where seen_at < now() - make_interval(secs => ${lostAfterSeconds})
      and exists (
        select from servers where id = ${witness}
          and seen_at >= now() - make_interval(secs => ${pauseSeconds})
          and up_since < now() - make_interval(secs => ${witnessSeconds})
      )`
}
