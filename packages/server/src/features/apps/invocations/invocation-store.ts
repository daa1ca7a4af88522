import type { DeploymentId, InvocationId, ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import { type Insertable, type Selectable, sql } from 'kysely'
import type { Database } from '../../../database/database.ts'
import { newestPage } from '../../../database/newest-page.ts'
import type { InvocationTable } from '../../../database/tables.ts'
import { runInvocation } from '../../../jobs/declared-jobs.ts'
import type { JobQueue } from '../../../jobs/job-runner.ts'

export type StoredInvocation = Selectable<InvocationTable>

export interface InvocationFilter {
  readonly projectId: ProjectId
  readonly appName: string | undefined
  readonly version: string | undefined
  readonly actionName: string | undefined
  readonly deploymentId: string | undefined
  readonly status: StoredInvocation['status'] | undefined
  readonly since: Date | undefined
  readonly text: string | undefined
}

export interface InvocationEnd {
  readonly status: 'succeeded' | 'failed'
  readonly output?: string | undefined
  readonly reason?: string | undefined
}

const unfinished = ['queued', 'running'] as const

export class InvocationStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async insert(row: Insertable<InvocationTable>, database: Database): Promise<StoredInvocation> {
    return database.insertInto('invocations').values(row).returningAll().executeTakeFirstOrThrow()
  }

  /** Finds an invocation by its id or a unique prefix of it. */
  async find(projectId: ProjectId, id: string): Promise<StoredInvocation | undefined> {
    const found = await this.#database
      .selectFrom('invocations')
      .selectAll()
      .where('project_id', '=', projectId)
      .where(sql<boolean>`starts_with(id, ${id})`)
      .limit(2)
      .execute()
    return found.length === 1 ? found[0] : undefined
  }

  async list(filter: InvocationFilter, page: PageRequest): Promise<Page<StoredInvocation>> {
    const { projectId, appName, version, actionName, deploymentId, status, since, text } = filter
    let query = this.#database.selectFrom('invocations').selectAll().where('project_id', '=', projectId)
    if (appName !== undefined) query = query.where('app_name', '=', appName)
    if (version !== undefined) query = query.where('version', '=', version)
    if (actionName !== undefined) query = query.where('action_name', '=', actionName)
    if (deploymentId !== undefined) query = query.where('deployment_id', '=', deploymentId as DeploymentId)
    if (status !== undefined) query = query.where('status', '=', status)
    if (since !== undefined) query = query.where('created_at', '>=', since)
    if (text !== undefined) {
      const part = text.toLowerCase()
      query = query.where(
        sql<boolean>`(id = ${text} or strpos(lower(app_name), ${part}) > 0 or strpos(lower(action_name), ${part}) > 0)`,
      )
    }
    return newestPage(query, page)
  }

  /** Undefined if it was already ended or another server runs it. */
  async begin(id: InvocationId, serverId: string): Promise<StoredInvocation | undefined> {
    return this.#database
      .updateTable('invocations')
      .set({ status: 'running' })
      .where('id', '=', id)
      .where('server_id', '=', serverId)
      .where('status', '=', 'queued')
      .returningAll()
      .executeTakeFirst()
  }

  /**
   * Queues an invocation whose machine has not started, on its server or on another one, which is notified in the same
   * transaction.
   */
  async requeue(id: InvocationId, serverId: string, other: string | undefined, jobs: JobQueue): Promise<boolean> {
    return this.#database.transaction().execute(async (database) => {
      const waiting = await database
        .updateTable('invocations')
        .set({ status: 'queued', server_id: other ?? serverId })
        .where('id', '=', id)
        .where('server_id', '=', serverId)
        .where('status', 'in', unfinished)
        .returning('id')
        .executeTakeFirst()
      if (waiting && other !== undefined) {
        await jobs.enqueue(runInvocation, { invocationId: id }, { server: other, transaction: database })
      }
      return waiting !== undefined
    })
  }

  /** An invocation that waits for this server to run it. */
  async findQueued(id: InvocationId, serverId: string): Promise<StoredInvocation | undefined> {
    return this.#database
      .selectFrom('invocations')
      .selectAll()
      .where('id', '=', id)
      .where('server_id', '=', serverId)
      .where('status', '=', 'queued')
      .executeTakeFirst()
  }

  /**
   * Removes an invocation that has not run and whose id nobody has received. Returns whether it existed and had not
   * ended.
   */
  async removeUnfinished(id: InvocationId): Promise<boolean> {
    const removed = await this.#database
      .deleteFrom('invocations')
      .where('id', '=', id)
      .where('status', 'in', unfinished)
      .returning('id')
      .executeTakeFirst()
    return removed !== undefined
  }

  /** Of several concurrent ends, the first one counts. */
  async finish(
    id: InvocationId,
    { status, output, reason }: InvocationEnd,
    now: Date,
  ): Promise<StoredInvocation | undefined> {
    return this.#database
      .updateTable('invocations')
      .set({ status, output: output ?? null, status_reason: reason ?? null, finished_at: now })
      .where('id', '=', id)
      .where('status', 'in', unfinished)
      .returningAll()
      .executeTakeFirst()
  }

  async isUnfinished(id: InvocationId): Promise<boolean> {
    const found = await this.#database
      .selectFrom('invocations')
      .select('id')
      .where('id', '=', id)
      .where('status', 'in', unfinished)
      .executeTakeFirst()
    return found !== undefined
  }

  /** Ends invocations of lost servers, and those long past their timeout. */
  async failLost(
    lost: { readonly serverIds: readonly string[] } | { readonly overdueSince: Date },
    reason: string,
    now: Date,
  ): Promise<readonly StoredInvocation[]> {
    if ('serverIds' in lost && lost.serverIds.length === 0) return []
    return this.#database
      .updateTable('invocations')
      .set({ status: 'failed', status_reason: reason, finished_at: now })
      .where('status', 'in', unfinished)
      .where((where) =>
        'serverIds' in lost ? where('server_id', 'in', [...lost.serverIds]) : where('deadline', '<', lost.overdueSince),
      )
      .returningAll()
      .execute()
  }

  async removeOld(before: Date): Promise<void> {
    await this.#database
      .deleteFrom('invocations')
      .where('created_at', '<', before)
      .where('finished_at', 'is not', null)
      .execute()
  }
}
