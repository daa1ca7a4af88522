import type { AuthCheckId, AuthConnectionId, AuthFlowId, ReplayId, SessionId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import type { ConnectionStatus, FlowStatus, FlowStep, TimelineType } from '@berth/contract/managed-auth/connection.ts'
import { sql } from 'kysely'
import type { Database } from '../../database/database.ts'

/** A flow or a check, as an entry of the timeline. */
export interface TimelineRow {
  readonly type: TimelineType
  readonly id: AuthFlowId | AuthCheckId
  readonly status: FlowStatus | ConnectionStatus
  readonly previous_status: ConnectionStatus | null
  readonly step: FlowStep | null
  readonly error_code: string | null
  readonly error_message: string | null
  readonly website_error: string | null
  readonly session_id: SessionId | null
  readonly replay_id: ReplayId | null
  readonly telemetry_captured: boolean
  readonly created_at: Date
  readonly updated_at: Date | null
  readonly ended_at: Date | null
}

const keptDays = 90

export class TimelineStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Newest first. Contains only finished checks. */
  async list(
    connectionId: AuthConnectionId,
    type: TimelineType | undefined,
    { limit, offset }: PageRequest,
  ): Promise<Page<TimelineRow>> {
    const { rows } = await sql<TimelineRow>`
      select * from (
        select lower(flow_type) as type, id, status, null as previous_status, step, error_code, error_message,
          website_error, session_id, replay_id, telemetry_captured, created_at, updated_at, ended_at
        from auth_flows where connection_id = ${connectionId}
        union all
        select 'health_check', id, status, previous_status, null, error_code, error_message,
          null, session_id, replay_id, telemetry_captured, created_at, null, ended_at
        from auth_checks where connection_id = ${connectionId} and status is not null
      ) as events
      where ${type ?? null}::text is null or type = ${type ?? null}
      order by created_at desc, id desc limit ${limit + 1} offset ${offset}`.execute(this.#database)
    return { items: rows.slice(0, limit), hasMore: rows.length > limit }
  }

  /** Removes old flows and checks. The newest flow of each connection stays. */
  async removeOld(now: Date): Promise<void> {
    const before = new Date(now.getTime() - keptDays * 24 * 60 * 60_000)
    await this.#database.deleteFrom('auth_checks').where('created_at', '<', before).execute()
    await sql`
      delete from auth_flows where created_at < ${before} and exists (
        select from auth_flows as newer
        where newer.connection_id = auth_flows.connection_id and newer.created_at > auth_flows.created_at
      )`.execute(this.#database)
  }
}
