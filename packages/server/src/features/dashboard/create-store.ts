import type { ProjectId } from '@berth/contract/common/ids.ts'
import { sql } from 'kysely'
import type { Database } from '../../database/database.ts'
import type { CreateTimes } from './create-times.ts'

const keptHours = 48

export interface HourOfCreates {
  readonly projectId: ProjectId
  readonly at: Date
  readonly reserveHits: number
  readonly errors: number
  readonly durations: CreateTimes
}

export class CreateStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Adds the counts to their hours and removes old hours. Skips projects that are gone. */
  async add(hours: readonly HourOfCreates[], now: Date): Promise<void> {
    const rows = hours.map(({ projectId, at, reserveHits, errors, durations }) => ({
      project_id: projectId,
      at: at.toISOString(),
      reserve_hits: reserveHits,
      errors,
      durations,
    }))
    await sql`
      with old as (
        delete from create_hours where at < ${now}::timestamptz - make_interval(hours => ${keptHours})
      )
      insert into create_hours (project_id, at, reserve_hits, errors, durations)
      select added.* from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
        as added (project_id text, at timestamptz, reserve_hits int, errors int, durations int[])
        join projects on projects.id = added.project_id
      order by added.project_id, added.at
      on conflict (project_id, at) do update set
        reserve_hits = create_hours.reserve_hits + excluded.reserve_hits,
        errors = create_hours.errors + excluded.errors,
        durations = (
          select array_agg(coalesce(before, 0) + coalesce(added, 0) order by place)
          from unnest(create_hours.durations, excluded.durations) with ordinality as both_of (before, added, place)
        )`.execute(this.#database)
  }
}
