import { sql } from 'kysely'
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

/** Which servers share the database. */
export class ServerStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Says that the server is there. */
  async tell(id: string): Promise<void> {
    await sql`
      insert into servers (id, up_since, seen_at) values (${id}, now(), now())
      on conflict (id) do update set seen_at = now(),
        up_since = case
          when servers.seen_at < now() - make_interval(secs => ${pauseSeconds}) then now()
          else servers.up_since
        end`.execute(this.#database)
  }

  /**
   * Ends the sessions of the servers that are gone, as far as the database goes, and tells how many: their time ends
   * when their server was last seen. Their machines are ended by their server, should it come back.
   */
  async endLostSessions(witness: string): Promise<number> {
    const { rows } = await sql`
      with lost as (
        select id, seen_at from servers
        where seen_at < now() - make_interval(secs => ${lostAfterSeconds})
          and exists (
            select from servers where id = ${witness}
              and seen_at >= now() - make_interval(secs => ${pauseSeconds})
              and up_since < now() - make_interval(secs => ${witnessSeconds})
          )
      ),
      removed as (
        delete from sessions using lost where driver_id = lost.id and state = 'starting'
      ),
      ended as (
        select sessions.id, coalesce(deleted_at, greatest(lost.seen_at, created_at)) as at
        from sessions join lost on driver_id = lost.id
        where state in ('active', 'ending')
        for update of sessions
      )
      update sessions
      set state = 'deleted', deleted_at = ended.at, uptime_ms = extract(epoch from ended.at - created_at) * 1000
      from ended where sessions.id = ended.id
      returning sessions.id`.execute(this.#database)
    return rows.length
  }
}
