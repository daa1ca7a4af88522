import { newId, type ProjectId } from '@berth/contract/common/ids.ts'
import type { Page, PageRequest } from '@berth/contract/common/page.ts'
import type { SortField, Target } from '@berth/contract/config-registry/config-registry.ts'
import type { AllowEntry } from '@berth/contract/egress/allow-list.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { JobQueue } from '../../jobs/job-runner.ts'
import type { AnalysisResult } from './analysis.ts'
import { endOf } from './analysis-end.ts'
import type { AnalysisStore, Summary } from './analysis-store.ts'
import { type Known, knownResults } from './knowledge.ts'
import { requirePublic } from './require-public.ts'
import type { RunStore } from './run-store.ts'
import { type StoredAnalysis, targetOf } from './stored-analysis.ts'
import { readSearch, readTarget } from './target.ts'

const lifetimeMilliseconds = 45 * 60 * 1000
const anHour = 60 * 60 * 1000

export interface ConfigRegistryConfig {
  /** The number of concurrent analyses of a server. */
  readonly atOnce: number
  readonly perProject: number
  readonly perSiteAndHour: number
  /** The pause between two visits of an analysis. */
  readonly pauseMilliseconds: number
}

interface ConfigRegistryServiceOptions {
  readonly analyses: AnalysisStore
  readonly runs: RunStore
  readonly jobs: JobQueue
  readonly config: ConfigRegistryConfig
  /** The destinations that the operator permits in addition to public addresses. */
  readonly egressAllow: readonly AllowEntry[]
  readonly hasModel: boolean
  readonly clock: Clock
}

export interface RegistryQuestion {
  readonly projectId: ProjectId
  readonly url: string
  readonly allowedProxyCountries: readonly string[] | null
}

/** An analysis, if there is one, with what is known about its target. */
export interface Answer extends AnalysisResult {
  readonly target: Target
  readonly analysis: StoredAnalysis | null
}

/** The rules of the config registry. */
export class ConfigRegistryService {
  readonly #options: ConfigRegistryServiceOptions

  constructor(options: ConfigRegistryServiceOptions) {
    this.#options = options
  }

  /** Returns what is known. Starts no analysis and sends no requests. */
  async lookUp({ url, allowedProxyCountries }: RegistryQuestion): Promise<Answer> {
    requirePublic(url, this.#options.egressAllow)
    const { url: _url, ...target } = readTarget(url)
    return { target, analysis: null, ...(await this.#known(target, allowedProxyCountries)) }
  }

  /** Starts an analysis, or finds a running one for the same request. */
  async resolve(question: RegistryQuestion & { readonly intent: string | null }): Promise<Answer> {
    const { analyses, jobs, config, clock } = this.#options
    const { projectId, allowedProxyCountries, intent } = question
    requirePublic(question.url, this.#options.egressAllow)
    const { url, ...target } = readTarget(question.url)
    await this.expireOverdue()
    const now = clock.now()
    const countries = allowedProxyCountries && [...new Set(allowedProxyCountries)].toSorted()
    const begun = await analyses.begin(
      {
        id: newId('analysis', now),
        project_id: projectId,
        url,
        target: target.normalized,
        host: target.host,
        domain: target.domain,
        allowed_proxy_countries: countries && JSON.stringify(countries),
        intent,
        created_at: now,
        expires_at: new Date(now.getTime() + lifetimeMilliseconds),
      },
      {
        perProject: config.perProject,
        perSite: { most: config.perSiteAndHour, since: new Date(now.getTime() - anHour) },
      },
      jobs,
    )
    if (begun.outcome === 'project busy') throw new BerthError('analysis_limit_reached', { limit: config.perProject })
    const known = await this.#known(target, allowedProxyCountries)
    if (begun.outcome === 'visited enough')
      return { target, analysis: null, ...known, guidance: visitedEnough(target, config.perSiteAndHour) }
    return { target, analysis: begun.analysis, ...known, guidance: this.#guidanceOf(begun.analysis) }
  }

  async get(projectId: ProjectId, id: string): Promise<Answer> {
    await this.expireOverdue()
    const analysis = await this.#options.analyses.find(projectId, id)
    if (!analysis) throw new BerthError('analysis_not_found', { analysis: id })
    return this.#answerOf(analysis)
  }

  async list(projectId: ProjectId, search: string | undefined, page: PageRequest): Promise<Page<StoredAnalysis>> {
    await this.expireOverdue()
    return this.#options.analyses.list(projectId, search && readSearch(search), page)
  }

  async listSummaries(
    projectId: ProjectId,
    {
      search,
      ...sort
    }: { readonly search: string | undefined; readonly sortBy: SortField; readonly order: 'asc' | 'desc' },
    page: PageRequest,
  ): Promise<Page<Summary>> {
    await this.expireOverdue()
    return this.#options.analyses.listSummaries(projectId, { ...sort, search: search && readSearch(search) }, page)
  }

  /** An analysis that no server has started ends immediately, any other when its server receives the cancellation. */
  async cancel(projectId: ProjectId, id: string): Promise<Answer> {
    const { analyses, clock } = this.#options
    await this.expireOverdue()
    const running = await analyses.requestCancel(projectId, id, clock.now())
    if (running?.attempts === 0) {
      const { allowed_proxy_countries: countries } = running
      const result = await this.#known(targetOf(running), countries)
      await analyses.finish(running.id, endOf('canceled', result, clock.now()), { unclaimed: true })
    }
    return this.get(projectId, id)
  }

  /** Ends analyses that have exceeded their time. */
  async expireOverdue(): Promise<void> {
    const { analyses, runs, clock } = this.#options
    for (const analysis of await analyses.listOverdue(clock.now())) {
      const result = await this.#known(targetOf(analysis), analysis.allowed_proxy_countries)
      await analyses.finish(analysis.id, endOf('expired', result, analysis.expires_at))
      await runs.forgetUnjudged(analysis.id)
    }
  }

  async #answerOf(analysis: StoredAnalysis): Promise<Answer> {
    const target = targetOf(analysis)
    if (analysis.result) return { target, analysis, ...analysis.result }
    const known = await this.#known(target, analysis.allowed_proxy_countries)
    return { target, analysis, ...known, guidance: this.#guidanceOf(analysis) }
  }

  async #known(target: Target, countries: readonly string[] | null): Promise<AnalysisResult> {
    const known = await knownResults(this.#options.runs, target, countries)
    return resultOf(known, null)
  }

  #guidanceOf({ intent }: StoredAnalysis): string | null {
    return intent !== null && !this.#options.hasModel ? intentNotTried : null
  }
}

export const intentNotTried =
  'The intent is not tried, because the operator of this service has configured no model: this judges by access only.'

export function resultOf(
  { recommendation, workingConfigurations }: Known,
  guidance: string | null,
  workloadOutcome: AnalysisResult['workload_outcome'] = null,
): AnalysisResult {
  return {
    recommendation,
    working_configurations: [...workingConfigurations],
    guidance,
    workload_outcome: workloadOutcome,
  }
}

function visitedEnough({ domain }: Target, most: number): string {
  return `${domain} was analysed ${most} times within an hour, and is left alone for now. Try again later.`
}
