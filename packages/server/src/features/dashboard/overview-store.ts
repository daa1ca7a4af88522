import type { ProjectId } from '@berth/contract/common/ids.ts'
import { sql } from 'kysely'
import type { Database } from '../../database/database.ts'
import type { CreateTimes } from './create-times.ts'

const hours = 24

export interface HourOfUse {
  readonly at: Date
  readonly started: number
  readonly sessions: number
  readonly browserSeconds: number
  readonly reserveHits: number
  readonly errors: number
  readonly durations: CreateTimes | null
}

export class OverviewStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Counts the sessions of a project by the hours of the last day, oldest first. */
  async listHours(projectId: ProjectId, now: Date): Promise<readonly HourOfUse[]> {
    const { rows } = await sql<HourOfUse>`
      with hours as (
        select at, least(at + interval '1 hour', ${now}) as until
        from generate_series(
          date_trunc('hour', ${now}::timestamptz) - make_interval(hours => ${hours - 1}),
          date_trunc('hour', ${now}::timestamptz), interval '1 hour') as at
      ), lived as materialized (
        select created_at, coalesce(deleted_at, 'infinity') as ended_at from sessions
        where project_id = ${projectId}
          and (deleted_at is null or deleted_at > ${now}::timestamptz - make_interval(hours => ${hours}))
      )
      select hours.at,
        count(*) filter (where created_at >= hours.at)::int as started,
        count(created_at)::int as sessions,
        coalesce(sum(extract(epoch from least(ended_at, hours.until) - greatest(created_at, hours.at)))
          filter (where created_at is not null), 0)::int as "browserSeconds",
        coalesce(max(creates.reserve_hits), 0) as "reserveHits", coalesce(max(creates.errors), 0) as errors,
        max(creates.durations) as durations
      from hours left join lived on created_at < hours.until and ended_at > hours.at
        left join create_hours creates on creates.project_id = ${projectId} and creates.at = hours.at
      group by hours.at order by hours.at`.execute(this.#database)
    return rows
  }
}
