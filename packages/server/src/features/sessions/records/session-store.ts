import type { Region } from '@berth/contract/browsers/browser.ts'
import type { MachineId, ProjectId, ProxyId, SessionId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { type Insertable, type RawBuilder, sql, type Updateable } from 'kysely'
import { type Database, violates } from '../../../database/database.ts'
import { newestPage } from '../../../database/newest-page.ts'
import type { SessionTable } from '../../../database/tables.ts'
import { unwaitedCommit } from '../../../database/unwaited-commit.ts'
import type { Session } from './session.ts'
import { liveStates, pooledStates, runningStates, type SessionEndReason, type SessionState } from './session-state.ts'

export interface SessionFilter {
  readonly projectId: ProjectId
  readonly status: 'active' | 'deleted' | 'all'
  readonly text: string | undefined
  readonly tags: Readonly<Record<string, string>> | undefined
  readonly region: Region | undefined
}

/** A session whose last activity ended, or whose standby began, longer ago than its timeout. */
export interface OverdueSession {
  readonly id: SessionId
  readonly idleSince: Date
}

/** The columns of a session that are needed to reach it. */
export type ResolvedSession = Pick<
  Session,
  'id' | 'project_id' | 'state' | 'driver_id' | 'machine_id' | 'created_at' | 'lease_number'
>

export type UnfinishedSession = Pick<Session, 'id' | 'machine_id' | 'state' | 'profile_save_changes' | 'gpu'>

export class SessionStore {
  readonly #database: Database
  readonly #serverId: string

  constructor(database: Database, serverId: string) {
    this.#database = database
    this.#serverId = serverId
  }

  /** Inserts a session before its machine exists. If two have the same name, the unique index rejects one. */
  async insert(session: Insertable<SessionTable>, database: Database = this.#database): Promise<Session> {
    return database
      .insertInto('sessions')
      .values(session)
      .returningAll()
      .executeTakeFirstOrThrow()
      .catch((error: unknown) => throwRefused(error, session))
  }

  /**
   * Takes a slot and inserts the session in one statement. Undefined if no slot is free. The lock on the organization's
   * slots is held only for this statement. The statement that activates the session waits for the disk.
   */
  async insertInPlace(session: Insertable<SessionTable>, takesSlot: RawBuilder<boolean>): Promise<Session | undefined> {
    const columns = Object.keys(session) as (keyof SessionTable)[]
    return this.#database
      .with(
        (place) => place('place').materialized(),
        (database) => database.selectNoFrom([takesSlot.as('is_free'), unwaitedCommit]),
      )
      .insertInto('sessions')
      .columns(columns)
      .expression((database) =>
        database
          .selectFrom('place')
          .where('is_free', '=', true)
          .select(columns.map((column) => sql`${session[column]}`.as(column))),
      )
      .returningAll()
      .executeTakeFirst()
      .catch((error: unknown) => throwRefused(error, session))
  }

  /**
   * Updates an active session. Rejects with `session_not_found` if it is not active. If two take the same name, the
   * unique index rejects one.
   */
  async update(id: SessionId, columns: Updateable<SessionTable>): Promise<Session> {
    const updated = await this.#update(id, columns, 'anywhere')
    if (!updated) throw new BerthError('session_not_found', { session: id })
    return updated
  }

  /** The same for a session of this server: nothing when it has ended, or another server has it now. */
  async updateHere(id: SessionId, columns: Updateable<SessionTable>): Promise<Session | undefined> {
    return this.#update(id, columns, 'here')
  }

  async #update(id: SessionId, columns: Updateable<SessionTable>, where: 'here' | 'anywhere') {
    return this.#database
      .updateTable('sessions')
      .set(columns)
      .where('id', '=', id)
      .where('state', '=', 'active')
      .$if(where === 'here', (query) => query.where('driver_id', '=', this.#serverId))
      .returningAll()
      .executeTakeFirst()
      .catch((error: unknown) => throwRefused(error, columns))
  }

  /** Whether another session of the project has this name. */
  async isNameTaken(projectId: ProjectId, name: string, except?: SessionId): Promise<boolean> {
    const holder = await this.#database
      .selectFrom('sessions')
      .select('id')
      .where('project_id', '=', projectId)
      .where('name', '=', name)
      .where('state', 'in', liveStates)
      .where('id', '<>', except ?? ('' as SessionId))
      .executeTakeFirst()
    return holder !== undefined
  }

  /**
   * Makes the session usable, or ready in its pool. Undefined if it was deleted before, or other servers count this one
   * as gone.
   */
  async activate(
    id: SessionId,
    idleSince: Date | null,
    state: 'active' | 'idle' = 'active',
  ): Promise<Session | undefined> {
    return this.#database
      .updateTable('sessions')
      .set({ state, idle_since: idleSince })
      .where('id', '=', id)
      .where('driver_id', '=', this.#serverId)
      .where('state', '=', 'starting')
      .returningAll()
      .executeTakeFirst()
  }

  /** Assigns another machine to a session that no caller knows yet. Undefined if it was deleted before. */
  async changeMachine(id: SessionId, machineId: MachineId): Promise<Session | undefined> {
    return this.#database
      .updateTable('sessions')
      .set({ machine_id: machineId, state: 'starting' })
      .where('id', '=', id)
      .where('state', 'in', liveStates)
      .returningAll()
      .executeTakeFirst()
  }

  /** Removes a session whose start failed. If it was deleted meanwhile, the delete handles it. */
  async removeStarting(id: SessionId): Promise<void> {
    await this.#database.deleteFrom('sessions').where('id', '=', id).where('state', '=', 'starting').execute()
  }

  /** A lease also counts as activity, which the agent does not know of. */
  async setIdleSince(id: SessionId, idleSince: Date | null): Promise<void> {
    const at = sql<Date | null>`${idleSince}::timestamptz`
    await this.#database
      .updateTable('sessions')
      .set({ idle_since: sql`case when ${at} is null then null else greatest(${at}, leased_at) end` })
      .where('id', '=', id)
      .where('state', '=', 'active')
      .execute()
  }

  /** Records that the machine of the session is frozen. Keeps an earlier time that a previous server recorded. */
  async beginStandby(id: SessionId, at: Date): Promise<void> {
    await this.#database
      .updateTable('sessions')
      .set({ standby_since: at })
      .where('id', '=', id)
      .where('state', 'in', runningStates)
      .where('standby_since', 'is', null)
      .execute()
  }

  /**
   * Records that it runs again. Waking it counts as activity: its timeout starts now, unless the agent reports
   * activity.
   */
  async endStandby(id: SessionId, at: Date): Promise<void> {
    const frozenFor = sql<number>`greatest(0, extract(epoch from ${at}::timestamptz - standby_since) * 1000)::bigint`
    await this.#database
      .updateTable('sessions')
      .set({
        standby_since: null,
        standby_ms: sql`standby_ms + ${frozenFor}`,
        idle_since: sql`case when idle_since is null then null else greatest(idle_since, ${at}::timestamptz) end`,
      })
      .where('id', '=', id)
      .where('state', 'in', runningStates)
      .where('standby_since', 'is not', null)
      .execute()
  }

  /**
   * Ends the session for its callers. Of several concurrent ends, one gets the session. The row stays and loses its
   * name. A server must not end a session because of its machine when another server already serves it.
   */
  async beginEnd(id: SessionId, now: Date, reason: SessionEndReason | null = null): Promise<Session | undefined> {
    return this.#beginEnd(id, now, { reason, isHere: reason === 'machine_ended' })
  }

  /** The same for a session of this server: one that another server has now can only be ended there at once. */
  async beginEndHere(id: SessionId, now: Date): Promise<Session | undefined> {
    return this.#beginEnd(id, now, { reason: null, isHere: true })
  }

  async #beginEnd(
    id: SessionId,
    now: Date,
    { reason, isHere }: { readonly reason: SessionEndReason | null; readonly isHere: boolean },
  ) {
    return this.#database
      .updateTable('sessions')
      .set({ state: 'ending', deleted_at: now, end_reason: reason })
      .where('id', '=', id)
      .where('state', 'in', pooledStates)
      .$if(isHere, (query) => query.where('driver_id', '=', this.#serverId))
      .returningAll()
      .executeTakeFirst()
  }

  /** Like `beginEnd`, if the end of the last activity is still the one that the caller saw. */
  async beginTimeout(id: SessionId, idleSince: Date, now: Date): Promise<Session | undefined> {
    return this.#database
      .updateTable('sessions')
      .set({ state: 'ending', deleted_at: now, end_reason: 'timeout' })
      .where('id', '=', id)
      .where('driver_id', '=', this.#serverId)
      .where('state', '=', 'active')
      .where('idle_since', '<=', idleSince)
      .returningAll()
      .executeTakeFirst()
  }

  /** Whether the session has been ended. */
  async hasEnded(id: SessionId): Promise<boolean> {
    return (await this.#findIn(['ending', 'deleted'], id)) !== undefined
  }

  /** A session of this server that is ending. */
  async findEnding(id: SessionId): Promise<Session | undefined> {
    return this.#database
      .selectFrom('sessions')
      .selectAll()
      .where('id', '=', id)
      .where('driver_id', '=', this.#serverId)
      .where('state', '=', 'ending')
      .executeTakeFirst()
  }

  /** Records that nothing of the machine is left: the usage of the session is final. */
  async finishEnd(id: SessionId): Promise<void> {
    await this.#database
      .updateTable('sessions')
      .set({ state: 'deleted', uptime_ms: sql<number>`awake_milliseconds(sessions, deleted_at)` })
      .where('id', '=', id)
      .where('state', '=', 'ending')
      .execute()
  }

  /**
   * Finds the active session by id or, if there is none, by name. With `includeDeleted`, also finds an ended one by id.
   */
  async find(projectId: ProjectId, idOrName: string, includeDeleted: boolean): Promise<Session | undefined> {
    return this.#database
      .selectFrom('sessions')
      .selectAll()
      .where('project_id', '=', projectId)
      .where((where) => {
        const active = where.and([
          where('state', '=', 'active'),
          where.or([where('id', '=', idOrName as SessionId), where('name', '=', idOrName)]),
        ])
        const ended = where.and([
          where('state', 'in', ['ending', 'deleted']),
          where('id', '=', idOrName as SessionId),
          isCallers,
        ])
        return includeDeleted ? where.or([active, ended]) : active
      })
      .orderBy(sql`id = ${idOrName}`, 'desc')
      .executeTakeFirst()
  }

  /** The active sessions that were created within an invocation, oldest first. */
  async listOfInvocation(projectId: ProjectId, invocationId: string): Promise<readonly Session[]> {
    return this.#database
      .selectFrom('sessions')
      .selectAll()
      .where('project_id', '=', projectId)
      .where('invocation_id', '=', invocationId)
      .where('state', '=', 'active')
      .orderBy('created_at')
      .orderBy('id')
      .execute()
  }

  /** Finds a session by id or, if there is none, by name: within a project, or only one specific session. */
  async resolve(
    scope: { readonly projectId: ProjectId } | { readonly sessionId: SessionId },
    idOrName: string,
    states: readonly SessionState[],
  ): Promise<ResolvedSession | undefined> {
    const query = this.#database
      .selectFrom('sessions')
      .select(['id', 'project_id', 'state', 'driver_id', 'machine_id', 'created_at', 'lease_number'])
      .where('state', 'in', states)
      .where(isCallers)
      .where((where) => where.or([where('id', '=', idOrName as SessionId), where('name', '=', idOrName)]))
      .orderBy(sql`id = ${idOrName}`, 'desc')
    const scoped =
      'projectId' in scope ? query.where('project_id', '=', scope.projectId) : query.where('id', '=', scope.sessionId)
    return scoped.executeTakeFirst()
  }

  async findActive(id: SessionId): Promise<Session | undefined> {
    return this.#findIn(['active'], id)
  }

  /** The session if its machine runs, including those in pools. */
  async findRunning(id: SessionId): Promise<Session | undefined> {
    return this.#findIn(runningStates, id)
  }

  #findIn(states: readonly SessionState[], id: SessionId): Promise<Session | undefined> {
    return this.#database
      .selectFrom('sessions')
      .selectAll()
      .where('id', '=', id)
      .where('state', 'in', states)
      .executeTakeFirst()
  }

  /** The driver's sessions that use the proxy, directly or in a route. */
  async listUsersOfProxy(driverId: string, proxyId: ProxyId): Promise<readonly UnfinishedSession[]> {
    return this.#usingProxy(proxyId)
      .select(['id', 'machine_id', 'state', 'profile_save_changes', 'gpu'])
      .where('driver_id', '=', driverId)
      .execute()
  }

  /** The servers that run such sessions. */
  async listServersUsingProxy(proxyId: ProxyId): Promise<readonly string[]> {
    const rows = await this.#usingProxy(proxyId).select('driver_id').distinct().execute()
    return rows.map(({ driver_id }) => driver_id)
  }

  #usingProxy(proxyId: ProxyId) {
    const route = JSON.stringify([{ proxy: { id: proxyId } }])
    return this.#database
      .selectFrom('sessions')
      .where('state', 'in', pooledStates)
      .where(sql<boolean>`(proxy ->> 'id' = ${proxyId} or network -> 'proxy_routes' @> ${route}::jsonb)`)
  }

  /** Newest first. */
  async list(filter: SessionFilter, page: PageRequest): Promise<Page<Session>> {
    const states = { active: ['active'], deleted: ['ending', 'deleted'], all: ['active', 'ending', 'deleted'] } as const
    let query = this.#database
      .selectFrom('sessions')
      .selectAll()
      .where('project_id', '=', filter.projectId)
      .where('state', 'in', states[filter.status])
      .where(isCallers)
    if (filter.region) query = query.where('region', '=', filter.region)
    if (filter.tags) query = query.where(sql<boolean>`tags @> ${JSON.stringify(filter.tags)}::jsonb`)
    if (filter.text) {
      const text = filter.text.toLowerCase()
      query = query.where(
        sql<boolean>`(strpos(lower(coalesce(name, '')), ${text}) > 0 or strpos(id, ${text}) > 0
          or strpos(coalesce(proxy ->> 'id', ''), ${text}) > 0
          or exists (select from browser_pools where browser_pools.id = sessions.pool_id
            and strpos(lower(coalesce(browser_pools.name, '')), ${text}) > 0)
          or exists (select from profiles where profiles.id = sessions.profile_id
            and (strpos(profiles.id, ${text}) > 0 or strpos(lower(coalesce(profiles.name, '')), ${text}) > 0)))`,
      )
    }
    return newestPage(query, page)
  }

  async listOverdue(driverId: string, now: Date): Promise<readonly OverdueSession[]> {
    const rows = await this.#database
      .selectFrom('sessions')
      .select(['id', 'idle_since'])
      .where('driver_id', '=', driverId)
      .where('state', '=', 'active')
      .where('idle_since', 'is not', null)
      // A lease also counts as activity, even while the machine is still frozen from before.
      .where(sql<boolean>`greatest(coalesce(standby_since, idle_since), leased_at)
        + make_interval(secs => timeout_seconds) <= ${now}`)
      .execute()
    return rows.map(({ id, idle_since }) => ({ id, idleSince: idle_since as Date }))
  }

  /** Every session of the driver whose machine may exist. */
  async listUnfinished(driverId: string): Promise<readonly UnfinishedSession[]> {
    return this.#database
      .selectFrom('sessions')
      .select(['id', 'machine_id', 'state', 'profile_save_changes', 'gpu'])
      .where('driver_id', '=', driverId)
      .where('state', '<>', 'deleted')
      .execute()
  }

  /** One unfinished session. */
  async findUnfinished(driverId: string, id: SessionId): Promise<UnfinishedSession | undefined> {
    return this.#database
      .selectFrom('sessions')
      .select(['id', 'machine_id', 'state', 'profile_save_changes', 'gpu'])
      .where('id', '=', id)
      .where('driver_id', '=', driverId)
      .where('state', '<>', 'deleted')
      .executeTakeFirst()
  }

  /** The server of a session whose machine may exist. */
  async findServer(id: SessionId): Promise<string | undefined> {
    const found = await this.#database
      .selectFrom('sessions')
      .select('driver_id')
      .where('id', '=', id)
      .where('state', '<>', 'deleted')
      .executeTakeFirst()
    return found?.driver_id
  }

  async countActive(): Promise<number> {
    const { count } = await this.#database
      .selectFrom('sessions')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('state', '=', 'active')
      .executeTakeFirstOrThrow()
    return count
  }
}

/**
 * Browsers of a pool count as callers' sessions while they are leased, and afterwards if they ended during the lease.
 */
const isCallers = sql<boolean>`(pool_id is null or leased_at is not null)`

/** Converts violated constraints of the table into errors of the request. */
export function throwRefused(
  error: unknown,
  { name, profile_id, otlp_destination_id }: Updateable<SessionTable>,
): never {
  if (violates(error, 'session_names'))
    throw new BerthError('session_name_taken', { name: name ?? '' }, { cause: error })
  // It was deleted since it was looked up.
  if (violates(error, 'sessions_profile_id_fkey')) {
    throw new BerthError('profile_not_found', { profile: profile_id ?? '' }, { cause: error })
  }
  if (violates(error, 'sessions_bound_otlp_destination_id_fkey')) {
    throw new BerthError('otlp_destination_not_found', { destination: otlp_destination_id ?? '' }, { cause: error })
  }
  throw error
}
