import type { AuthConnectionId, AuthFlowId, ReplayId, SessionId } from '@berth/contract/common/ids.ts'
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely'
import type { Database } from '../../../database/database.ts'
import type { AuthFlowTable } from '../../../database/tables.ts'
import { nextSteps } from './flow-state.ts'

export type StoredFlow = Selectable<AuthFlowTable>

/** The common columns of every end: nothing that was entered is kept. */
const ended = {
  step: 'COMPLETED' as const,
  page: null,
  known_refs: '[]',
  interaction_id: null,
  sealed_answer: null,
  sealed_inputs: null,
  acting_on: null,
  external_action_message: null,
  sealed_handoff: null,
  waits_until: null,
}

const secondsUntilOrphaned = 120

export class FlowStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /**
   * Starts a flow and cancels the one in progress. Of two concurrent calls, the later one cancels the earlier one's
   * flow. Undefined if the connection is gone.
   */
  async begin(
    flow: Insertable<AuthFlowTable>,
  ): Promise<{ readonly flow: StoredFlow; readonly canceled: StoredFlow | undefined } | undefined> {
    return this.#database.transaction().execute(async (database) => {
      const connection = await database
        .selectFrom('auth_connections')
        .select('id')
        .where('id', '=', flow.connection_id)
        .forUpdate()
        .executeTakeFirst()
      if (!connection) return undefined
      const canceled = await cancel(database, flow.connection_id, flow.created_at as Date)
      const begun = await database.insertInto('auth_flows').values(flow).returningAll().executeTakeFirstOrThrow()
      return { flow: begun, canceled }
    })
  }

  /** Starts a flow that nobody waits for, unless one is in progress. */
  async beginUnlessBusy(flow: Insertable<AuthFlowTable>, database = this.#database): Promise<StoredFlow | undefined> {
    return (
      database
        .insertInto('auth_flows')
        .values(flow)
        // A literal: with a parameter, the generic plan of a prepared statement would not use the partial index.
        .onConflict((conflict) =>
          conflict.column('connection_id').where('status', '=', sql.lit<'IN_PROGRESS'>('IN_PROGRESS')).doNothing(),
        )
        .returningAll()
        .executeTakeFirst()
    )
  }

  async find(id: AuthFlowId): Promise<StoredFlow | undefined> {
    return this.#database.selectFrom('auth_flows').selectAll().where('id', '=', id).executeTakeFirst()
  }

  /**
   * The newest flow of each connection: the one in progress, or the last one that ended. Concurrent flows may not start
   * in the order of their times.
   */
  async listNewest(connectionIds: readonly AuthConnectionId[]): Promise<ReadonlyMap<AuthConnectionId, StoredFlow>> {
    if (connectionIds.length === 0) return new Map()
    const flows = await this.#database
      .selectFrom('auth_flows')
      .selectAll()
      .distinctOn('connection_id')
      .where('connection_id', 'in', connectionIds)
      .orderBy('connection_id')
      .orderBy('ended_at', (order) => order.desc().nullsFirst())
      .orderBy('created_at', 'desc')
      .orderBy('id', 'desc')
      .execute()
    return new Map(flows.map((flow) => [flow.connection_id, flow]))
  }

  /** Assigns a waiting flow to a server. Of two servers, or two attempts, one succeeds. */
  async take(id: AuthFlowId, serverId: string): Promise<StoredFlow | undefined> {
    return this.#database
      .updateTable('auth_flows')
      .set({ server_id: serverId })
      .where('id', '=', id)
      .where('status', '=', 'IN_PROGRESS')
      .where('server_id', 'is', null)
      .returningAll()
      .executeTakeFirst()
  }

  /** Changes the flow if it is unchanged since it was read. Undefined otherwise. */
  async change(
    { id, version, step }: StoredFlow,
    columns: Updateable<AuthFlowTable>,
    now: Date,
  ): Promise<StoredFlow | undefined> {
    if (columns.step && columns.step !== step && !nextSteps[step].includes(columns.step)) {
      throw new Error(`a flow cannot change from ${step} to ${columns.step}`)
    }
    return this.#database
      .updateTable('auth_flows')
      .set({ ...columns, version: version + 1, updated_at: now })
      .where('id', '=', id)
      .where('version', '=', version)
      .where('status', '=', 'IN_PROGRESS')
      .where('expires_at', '>', now)
      .returningAll()
      .executeTakeFirst()
  }

  /** Accepts the answer to the current question. Of two answers, one is accepted. */
  async answer(
    { id, interaction_id }: StoredFlow,
    columns: Pick<Updateable<AuthFlowTable>, 'sealed_answer' | 'sso_provider'>,
    now: Date,
  ): Promise<StoredFlow | undefined> {
    return this.#database
      .updateTable('auth_flows')
      .set(({ eb }) => ({
        ...columns,
        step: 'SUBMITTING',
        interaction_id: null,
        website_error: null,
        external_action_message: null,
        waits_until: null,
        version: eb('version', '+', 1),
        updated_at: now,
      }))
      .where('id', '=', id)
      .where('status', '=', 'IN_PROGRESS')
      .where('step', 'in', ['AWAITING_INPUT', 'AWAITING_EXTERNAL_ACTION'])
      .where('interaction_id', '=', interaction_id)
      .where('expires_at', '>', now)
      .where((where) => where.or([where('waits_until', 'is', null), where('waits_until', '>', now)]))
      .returningAll()
      .executeTakeFirst()
  }

  /** Ends a flow in progress. With `version`, only if it is unchanged since it was read. */
  async end(
    id: AuthFlowId,
    columns: Pick<Updateable<AuthFlowTable>, 'error_code' | 'error_message' | 'website_error' | 'post_login_url'> & {
      readonly status: 'SUCCESS' | 'FAILED' | 'CANCELED' | 'EXPIRED'
    },
    { now, version }: { readonly now: Date; readonly version?: number },
  ): Promise<StoredFlow | undefined> {
    let query = this.#database
      .updateTable('auth_flows')
      .set(({ eb }) => ({ ...ended, ...columns, version: eb('version', '+', 1), updated_at: now, ended_at: now }))
      .where('id', '=', id)
      .where('status', '=', 'IN_PROGRESS')
    if (version !== undefined) query = query.where('version', '=', version)
    return query.returningAll().executeTakeFirst()
  }

  /**
   * Ends flows that have expired or have waited for a person for too long. Excludes successful logins that are being
   * saved.
   */
  async expire(now: Date, connectionIds?: readonly AuthConnectionId[]): Promise<readonly StoredFlow[]> {
    if (connectionIds?.length === 0) return []
    let query = this.#database
      .updateTable('auth_flows')
      .set(({ eb }) => ({
        ...ended,
        status: 'EXPIRED',
        error_code: sql`case when step = 'AWAITING_EXTERNAL_ACTION' then 'external_action_timeout'
          when step = 'AWAITING_INPUT' then 'awaiting_input_timeout' end`,
        error_message: sql`case when step in ('AWAITING_INPUT', 'AWAITING_EXTERNAL_ACTION')
          then 'Nobody has answered in time.' else 'The login has taken too long.' end`,
        version: eb('version', '+', 1),
        updated_at: now,
        ended_at: now,
      }))
      .where('status', '=', 'IN_PROGRESS')
      .where('evidence', 'is', null)
      .where((where) => where.or([where('expires_at', '<=', now), where('waits_until', '<=', now)]))
    if (connectionIds) query = query.where('connection_id', 'in', connectionIds)
    return query.returningAll().execute()
  }

  /** Consumes the code with this hash, if it belongs to the flow and was not used before. */
  async useHandoff(id: AuthFlowId, hash: Buffer, now: Date): Promise<boolean> {
    const used = await this.#database
      .updateTable('auth_flows')
      .set({ handoff_used_at: now, sealed_handoff: null })
      .where('id', '=', id)
      .where('handoff_hash', '=', hash)
      .where('handoff_used_at', 'is', null)
      .where('status', '=', 'IN_PROGRESS')
      .where('expires_at', '>', now)
      .returning('id')
      .executeTakeFirst()
    return used !== undefined
  }

  /** Counts a wrong code. After too many, no code is accepted. */
  async countHandoffTry(id: AuthFlowId, maxTries: number, now: Date): Promise<void> {
    await this.#database
      .updateTable('auth_flows')
      .set(({ eb }) => ({
        handoff_tries: eb('handoff_tries', '+', 1),
        handoff_used_at: sql`case when handoff_tries + 1 >= ${maxTries}
          then coalesce(handoff_used_at, ${now}) else handoff_used_at end`,
      }))
      .where('id', '=', id)
      .execute()
  }

  /** The flows that this server was running when it was killed. */
  async listInProgress(serverId: string): Promise<readonly StoredFlow[]> {
    return this.#database
      .selectFrom('auth_flows')
      .selectAll()
      .where('server_id', '=', serverId)
      .where('status', '=', 'IN_PROGRESS')
      .execute()
  }

  /** The sessions that an earlier run of this server has left and that no flow uses. */
  async listLeftSessions(serverId: string, tagName: string): Promise<readonly SessionId[]> {
    const { rows } = await sql<{ id: SessionId }>`
      select id from sessions
      where driver_id = ${serverId} and state = 'active' and tags ->> ${tagName} ~ '^(afl|ack)[a-z0-9]{21}$'
        and not exists (select from auth_flows where session_id = sessions.id and status = 'IN_PROGRESS')`.execute(
      this.#database,
    )
    return rows.map(({ id }) => id)
  }

  /** The flows of servers that count as gone. */
  async listOrphans(): Promise<readonly StoredFlow[]> {
    return this.#database
      .selectFrom('auth_flows')
      .selectAll()
      .where('status', '=', 'IN_PROGRESS')
      .where('server_id', 'is not', null)
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('servers')
              .select('servers.id')
              .whereRef('servers.id', '=', 'auth_flows.server_id')
              .where(sql<boolean>`seen_at >= now() - make_interval(secs => ${secondsUntilOrphaned})`),
          ),
        ),
      )
      .execute()
  }

  async noteSession(id: AuthFlowId, sessionId: SessionId, telemetryCaptured: boolean): Promise<boolean> {
    const noted = await this.#database
      .updateTable('auth_flows')
      .set(({ eb }) => ({
        session_id: sessionId,
        telemetry_captured: telemetryCaptured,
        version: eb('version', '+', 1),
      }))
      .where('id', '=', id)
      .where('status', '=', 'IN_PROGRESS')
      .returning('id')
      .executeTakeFirst()
    return noted !== undefined
  }

  async noteReplay(id: AuthFlowId, replayId: ReplayId): Promise<void> {
    await this.#database.updateTable('auth_flows').set({ replay_id: replayId }).where('id', '=', id).execute()
  }
}

/** The flow that was in progress, now canceled. */
export async function cancel(
  database: Database,
  connectionId: AuthConnectionId,
  now: Date,
): Promise<StoredFlow | undefined> {
  return database
    .updateTable('auth_flows')
    .set(({ eb }) => ({
      ...ended,
      status: 'CANCELED',
      version: eb('version', '+', 1),
      updated_at: now,
      ended_at: now,
    }))
    .where('connection_id', '=', connectionId)
    .where('status', '=', 'IN_PROGRESS')
    .returningAll()
    .executeTakeFirst()
}
