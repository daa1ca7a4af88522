import type { AnalysisId, ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import type {
  AnalysisStatus,
  RecommendationResult,
  SortField,
} from '@berth/contract/config-registry/config-registry.ts'
import { type Insertable, sql } from 'kysely'
import type { Database } from '../../database/database.ts'
import { newestPage, pageOf } from '../../database/newest-page.ts'
import type { ConfigAnalysisTable } from '../../database/tables.ts'
import { analyseSite } from '../../jobs/declared-jobs.ts'
import type { JobQueue } from '../../jobs/job-runner.ts'
import type { AnalysisResult } from './analysis.ts'
import type { StoredAnalysis } from './stored-analysis.ts'

export type NewAnalysis = Omit<Insertable<ConfigAnalysisTable>, 'status' | 'last_requested_at'>

export interface AnalysisLimits {
  /** The number of concurrent analyses of a project. */
  readonly perProject: number
  /** The number of analyses of a domain by all projects, started since that time. */
  readonly perSite: { readonly most: number; readonly since: Date }
}

export type Begun =
  | { readonly outcome: 'started' | 'joined'; readonly analysis: StoredAnalysis }
  | { readonly outcome: 'visited enough' }
  | { readonly outcome: 'project busy' }

export interface AnalysisEnd {
  readonly status: Exclude<AnalysisStatus, 'running'>
  readonly failure?: { readonly code: string; readonly message: string }
  readonly result: AnalysisResult
  readonly label: string | null
  readonly successRate: number | null
  readonly finishedAt: Date
}

export interface Summary {
  readonly target: string
  readonly analysis_id: AnalysisId
  readonly analysis_status: AnalysisStatus
  readonly last_requested_at: Date
  readonly recommendation: RecommendationResult | null
  readonly recommended_config_label: string | null
  readonly success_rate: number | null
}

export class AnalysisStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /**
   * Starts an analysis with its job, or finds a running one for the same request. Requests for one domain, and requests
   * of one project, wait for each other, so that no two take the last free slot.
   */
  async begin(analysis: NewAnalysis, limits: AnalysisLimits, jobs: JobQueue): Promise<Begun> {
    const { project_id, target, domain, intent, allowed_proxy_countries: countries, created_at: now } = analysis
    return this.#database.transaction().execute(async (database) => {
      for (const key of [`project ${project_id}`, `domain ${domain}`])
        await sql`select pg_advisory_xact_lock(hashtextextended(${`config registry ${key}`}, 0))`.execute(database)
      await database
        .updateTable('config_analyses')
        .set({ last_requested_at: now })
        .where('project_id', '=', project_id)
        .where('target', '=', target)
        .execute()
      const running = database.selectFrom('config_analyses').selectAll().where('status', '=', 'running')
      const joined = await running
        .where('project_id', '=', project_id)
        .where('target', '=', target)
        .where('url', '=', analysis.url)
        .where('cancel_requested_at', 'is', null)
        .where(sql<boolean>`intent is not distinct from ${intent}`)
        .where(sql<boolean>`allowed_proxy_countries is not distinct from ${countries}::jsonb`)
        .executeTakeFirst()
      if (joined) return { outcome: 'joined', analysis: joined }
      const ofProject = await running.where('project_id', '=', project_id).execute()
      if (ofProject.length >= limits.perProject) return { outcome: 'project busy' }
      const { visits } = await database
        .selectFrom('config_analyses')
        .select(sql<number>`count(*)::int`.as('visits'))
        .where('domain', '=', domain)
        .where('created_at', '>', limits.perSite.since)
        .executeTakeFirstOrThrow()
      if (visits >= limits.perSite.most) return { outcome: 'visited enough' }
      const started = await database
        .insertInto('config_analyses')
        .values({ ...analysis, status: 'running', last_requested_at: now })
        .returningAll()
        .executeTakeFirstOrThrow()
      await jobs.enqueue(analyseSite, { analysisId: started.id }, { transaction: database })
      return { outcome: 'started', analysis: started }
    })
  }

  async find(projectId: ProjectId, id: string): Promise<StoredAnalysis | undefined> {
    return this.#database
      .selectFrom('config_analyses')
      .selectAll()
      .where('project_id', '=', projectId)
      .where('id', '=', id as AnalysisId)
      .executeTakeFirst()
  }

  /** Newest first. */
  async list(projectId: ProjectId, search: string | undefined, page: PageRequest): Promise<Page<StoredAnalysis>> {
    let query = this.#database.selectFrom('config_analyses').selectAll().where('project_id', '=', projectId)
    if (search) query = query.where(sql<boolean>`strpos(lower(target), ${search.toLowerCase()}) > 0`)
    return newestPage(query, page)
  }

  /** Each target of the project, with its latest analysis and the result of the latest finished one. */
  async listSummaries(
    projectId: ProjectId,
    {
      search,
      sortBy,
      order,
    }: { readonly search: string | undefined; readonly sortBy: SortField; readonly order: 'asc' | 'desc' },
    page: PageRequest,
  ): Promise<Page<Summary>> {
    const latest = this.#database
      .selectFrom('config_analyses')
      .distinctOn('target')
      .select(['target', 'id', 'status', 'last_requested_at'])
      .where('project_id', '=', projectId)
      .orderBy('target')
      .orderBy('created_at', 'desc')
      .orderBy('id', 'desc')
    let query = this.#database
      .selectFrom(latest.as('latest'))
      .leftJoinLateral(
        (from) =>
          from
            .selectFrom('config_analyses')
            .select(['recommended_config_label', 'success_rate', 'result'])
            .where('project_id', '=', projectId)
            .whereRef('config_analyses.target', '=', 'latest.target')
            .where('finished_at', 'is not', null)
            .orderBy('finished_at', 'desc')
            .orderBy('id', 'desc')
            .limit(1)
            .as('told'),
        (join) => join.onTrue(),
      )
      .select([
        'latest.target',
        'latest.id as analysis_id',
        'latest.status as analysis_status',
        'latest.last_requested_at',
        'told.recommended_config_label',
        'told.success_rate',
        sql<RecommendationResult | null>`told.result -> 'recommendation'`.as('recommendation'),
      ])
    if (search) query = query.where(sql<boolean>`strpos(lower(latest.target), ${search.toLowerCase()}) > 0`)
    const columns = {
      target: sql`latest.target collate "C"`,
      analysis_status: sql`latest.status`,
      recommended_config: sql`told.recommended_config_label collate "C"`,
      last_requested_at: sql`latest.last_requested_at`,
      success_rate: sql`told.success_rate`,
    }
    const direction = sql.raw(order)
    return pageOf(
      query.orderBy(sql`${columns[sortBy]} ${direction} nulls last, latest.target collate "C" ${direction}`),
      page,
    )
  }

  /** Claims an analysis for a server and counts the attempt. Undefined if it is finished. */
  async claim(id: AnalysisId): Promise<StoredAnalysis | undefined> {
    return this.#database
      .updateTable('config_analyses')
      .set({ attempts: sql`attempts + 1` })
      .where('id', '=', id)
      .where('status', '=', 'running')
      .returningAll()
      .executeTakeFirst()
  }

  /** Requests the cancellation from the server that runs it. Returns its state before, if it was not finished. */
  async requestCancel(projectId: ProjectId, id: string, now: Date): Promise<StoredAnalysis | undefined> {
    return this.#database
      .updateTable('config_analyses')
      .set({ cancel_requested_at: sql`coalesce(cancel_requested_at, ${now})` })
      .where('project_id', '=', projectId)
      .where('id', '=', id as AnalysisId)
      .where('status', '=', 'running')
      .returningAll()
      .executeTakeFirst()
  }

  async isCancelRequested(id: AnalysisId): Promise<boolean> {
    const row = await this.#database
      .selectFrom('config_analyses')
      .select('cancel_requested_at')
      .where('id', '=', id)
      .executeTakeFirst()
    return row?.cancel_requested_at !== null
  }

  /**
   * Ends an analysis. Of several ends, the first one counts. With `unclaimed`, only ends one that no server has
   * started.
   */
  async finish(id: AnalysisId, end: AnalysisEnd, { unclaimed = false } = {}): Promise<boolean> {
    let query = this.#database
      .updateTable('config_analyses')
      .set({
        status: end.status,
        failure: end.failure ? JSON.stringify(end.failure) : null,
        result: JSON.stringify(end.result),
        recommended_config_label: end.label,
        success_rate: end.successRate,
        finished_at: end.finishedAt,
      })
      .where('id', '=', id)
      .where('status', '=', 'running')
    if (unclaimed) query = query.where('attempts', '=', 0)
    const { numUpdatedRows } = await query.executeTakeFirst()
    return numUpdatedRows > 0n
  }

  async listOverdue(now: Date): Promise<readonly StoredAnalysis[]> {
    return this.#database
      .selectFrom('config_analyses')
      .selectAll()
      .where('status', '=', 'running')
      .where('expires_at', '<=', now)
      .execute()
  }
}
