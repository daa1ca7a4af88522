import type { ProjectId, ReplayId, SessionId } from '@berth/contract/common/ids.ts'
import type { ReplayEndReason } from '@berth/contract/replays/replay.ts'
import { type Insertable, type Selectable, sql } from 'kysely'
import type { Database } from '../../../database/database.ts'
import type { ReplayPartTable, ReplayTable } from '../../../database/tables.ts'

/** A recording of the screen of a session. */
export type Replay = Selectable<ReplayTable>
export type ReplayPart = Selectable<ReplayPartTable>

interface ReplayEnd {
  readonly reason: ReplayEndReason
  /** Defaults to the end of its last part. */
  readonly finishedAt?: Date
  readonly retentionDays: number
}

export class ReplayStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async insert(replay: Insertable<ReplayTable>): Promise<Replay> {
    return this.#database.insertInto('replays').values(replay).returningAll().executeTakeFirstOrThrow()
  }

  async insertPart(part: Insertable<ReplayPartTable>): Promise<void> {
    await this.#database.insertInto('replay_parts').values(part).execute()
  }

  /** Ends a recording. Does nothing to one that has ended. */
  async finish(id: ReplayId, { reason, finishedAt, retentionDays }: ReplayEnd): Promise<void> {
    const lastMoment = sql<Date>`started_at + make_interval(secs =>
      (select coalesce(sum(duration_ms), 0) from replay_parts where replay_id = replays.id) / 1000.0)`
    const end = finishedAt ? sql<Date>`${finishedAt}::timestamptz` : lastMoment
    await this.#database
      .updateTable('replays')
      .set({
        end_reason: reason,
        finished_at: end,
        expires_at: sql<Date>`${end} + make_interval(days => ${retentionDays}::integer)`,
      })
      .where('id', '=', id)
      .where('finished_at', 'is', null)
      .execute()
  }

  /** Oldest first. */
  async list(sessionId: SessionId): Promise<readonly Replay[]> {
    return this.#database
      .selectFrom('replays')
      .selectAll()
      .where('session_id', '=', sessionId)
      .orderBy('started_at')
      .orderBy('id')
      .execute()
  }

  async find(sessionId: SessionId, id: string): Promise<Replay | undefined> {
    return this.#database
      .selectFrom('replays')
      .selectAll()
      .where('id', '=', id as ReplayId)
      .where('session_id', '=', sessionId)
      .executeTakeFirst()
  }

  async findById(id: ReplayId): Promise<Replay | undefined> {
    return this.#database.selectFrom('replays').selectAll().where('id', '=', id).executeTakeFirst()
  }

  /** In the order of the recording. */
  async listParts(id: ReplayId): Promise<readonly ReplayPart[]> {
    return this.#database.selectFrom('replay_parts').selectAll().where('replay_id', '=', id).orderBy('number').execute()
  }

  async countOf(sessionId: SessionId): Promise<number> {
    const { count } = await this.#database
      .selectFrom('replays')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('session_id', '=', sessionId)
      .executeTakeFirstOrThrow()
    return count
  }

  /** The total size of the project's recordings. */
  async sizeOf(projectId: ProjectId): Promise<number> {
    const { bytes } = await this.#database
      .selectFrom('replay_parts')
      .innerJoin('replays', 'replays.id', 'replay_id')
      .select(sql<number>`coalesce(sum(size_bytes), 0)::bigint`.as('bytes'))
      .where('project_id', '=', projectId)
      .executeTakeFirstOrThrow()
    return bytes
  }

  /** Unfinished recordings of this server, including those of earlier runs that were killed. */
  async listUnfinished(driverId: string): Promise<readonly ReplayId[]> {
    const rows = await this.#database
      .selectFrom('replays')
      .select('id')
      .where('driver_id', '=', driverId)
      .where('finished_at', 'is', null)
      .execute()
    return rows.map(({ id }) => id)
  }

  /** Unfinished recordings of a session that other servers made. */
  async listLeft(sessionId: SessionId, driverId: string): Promise<readonly ReplayId[]> {
    const rows = await this.#database
      .selectFrom('replays')
      .select('id')
      .where('session_id', '=', sessionId)
      .where('driver_id', '<>', driverId)
      .where('finished_at', 'is', null)
      .execute()
    return rows.map(({ id }) => id)
  }

  /** Unfinished recordings of sessions that ended before this time, by when their server should have completed them. */
  async listOrphans(endedBefore: Date): Promise<readonly ReplayId[]> {
    const rows = await this.#database
      .selectFrom('replays')
      .innerJoin('sessions', 'sessions.id', 'session_id')
      .select('replays.id')
      .where('finished_at', 'is', null)
      .where('sessions.state', '=', 'deleted')
      .where('sessions.deleted_at', '<', endedBefore)
      .execute()
    return rows.map(({ id }) => id)
  }

  async listExpired(now: Date, limit: number): Promise<readonly ReplayId[]> {
    const rows = await this.#database
      .selectFrom('replays')
      .select('id')
      .where('expires_at', '<=', now)
      .limit(limit)
      .execute()
    return rows.map(({ id }) => id)
  }

  async delete(id: ReplayId): Promise<void> {
    await this.#database.deleteFrom('replays').where('id', '=', id).execute()
  }

  /** Returns those of the blobs that recordings still use. */
  async listUsedBlobs(names: readonly string[]): Promise<readonly string[]> {
    const rows = await this.#database.selectFrom('replay_parts').select('blob').where('blob', 'in', names).execute()
    return rows.map(({ blob }) => blob)
  }
}
