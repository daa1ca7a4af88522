import type { AnalysisId } from '@berth/contract/common/ids.ts'
import type { Recommendation } from '@berth/contract/config-registry/config-registry.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { mayPass } from '../../database/database.ts'
import type { AnalysisResult } from './analysis.ts'
import { endOf } from './analysis-end.ts'
import type { AnalysisStore } from './analysis-store.ts'
import { intentNotTried, resultOf } from './config-registry-service.ts'
import { configurationOf, type ProxyOffer } from './configurations.ts'
import { knownResults } from './knowledge.ts'
import type { RunStore } from './run-store.ts'
import { type StoredAnalysis, targetOf } from './stored-analysis.ts'
import type { AnalysisSessions } from './visits/analysis-sessions.ts'
import { tryConfigurations } from './visits/try-configurations.ts'
import { SiteVisits } from './visits/visit-site.ts'
import type { WorkloadTrials } from './workloads/workload-trials.ts'

const pollMilliseconds = 1_000
/** Counts servers that were killed or lost the database during the analysis. */
const maxAttempts = 4

interface AnalysisRunnerOptions {
  readonly analyses: AnalysisStore
  readonly runs: RunStore
  readonly sessions: AnalysisSessions
  readonly offers: readonly ProxyOffer[]
  /** The pause between two visits to a site. */
  readonly pauseMilliseconds: number
  /** Absent if the operator has configured no model. */
  readonly workloads: WorkloadTrials | undefined
  readonly clock: Clock
  readonly logger: Logger
}

/** Why an analysis ends before it is complete. */
class Ended extends Error {
  readonly status: 'canceled' | 'expired'

  constructor(status: 'canceled' | 'expired') {
    super(status)
    this.status = status
  }
}

/** Runs analyses. Resumes an analysis of a killed server where that one stopped. */
export class AnalysisRunner {
  readonly #options: AnalysisRunnerOptions

  constructor(options: AnalysisRunnerOptions) {
    this.#options = options
  }

  async run(id: AnalysisId, signal: AbortSignal): Promise<void> {
    const { analyses, sessions } = this.#options
    const analysis = await analyses.claim(id)
    if (!analysis) return
    await sessions.endLeftovers(analysis)
    if (analysis.attempts > maxAttempts) {
      const message = 'It was interrupted several times.'
      return this.#end(analysis, 'failed', { failure: { code: 'analysis_interrupted', message } })
    }
    const ending = new AbortController()
    const watch = setInterval(() => void this.#look(analysis, ending), pollMilliseconds)
    try {
      await this.#look(analysis, ending)
      await this.#analyse(analysis, AbortSignal.any([signal, ending.signal]))
    } catch (error) {
      await this.#endEarly(analysis, ending.signal.reason ?? error, signal)
    } finally {
      clearInterval(watch)
    }
  }

  /** Aborts a running analysis that was canceled or has expired. */
  async #look({ id, expires_at }: StoredAnalysis, ending: AbortController): Promise<void> {
    const { analyses, clock } = this.#options
    if (clock.now() >= expires_at) return ending.abort(new Ended('expired'))
    // The next poll retries.
    if (await analyses.isCancelRequested(id).catch(() => false)) ending.abort(new Ended('canceled'))
  }

  async #analyse(analysis: StoredAnalysis, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const { runs, sessions, offers, clock, pauseMilliseconds } = this.#options
    const seen = await tryConfigurations({
      analysis,
      visits: new SiteVisits({ analysis, sessions, signal, pauseMilliseconds }),
      offers,
      earlier: await runs.list(analysis.id),
      keep: (run) => runs.add(analysis, run, clock.now()),
    })
    await runs.judge(analysis.id, seen.runs)
    const known = await this.#known(analysis)
    const recommendation = seen.verdict ?? known.recommendation
    const recommended = recommendation?.type === 'recommendation' ? recommendation : undefined
    const workload = await this.#tryIntent(analysis, recommended, signal)
    signal.throwIfAborted()
    const guidance = [seen.guidance, workload.guidance].filter((text) => text !== null).join(' ') || null
    const working = seen.verdict ? [] : known.workingConfigurations
    const result = resultOf({ recommendation, workingConfigurations: working }, guidance, workload.outcome)
    await this.#end(analysis, 'completed', { result })
  }

  async #tryIntent(
    analysis: StoredAnalysis,
    recommended: Recommendation | undefined,
    signal: AbortSignal,
  ): Promise<{ readonly outcome: AnalysisResult['workload_outcome']; readonly guidance: string | null }> {
    const { workloads } = this.#options
    if (analysis.intent === null) return { outcome: null, guidance: null }
    if (!workloads) return { outcome: null, guidance: intentNotTried }
    if (!recommended) return { outcome: 'blocked', guidance: null }
    const outcome = await workloads.run(analysis, configurationOf(recommended), signal)
    return { outcome, guidance: null }
  }

  /** Throws errors that do not concern the caller. Another server, or this one, then starts again. */
  async #endEarly(analysis: StoredAnalysis, reason: unknown, signal: AbortSignal): Promise<void> {
    if (reason instanceof Ended) return this.#end(analysis, reason.status)
    if (signal.aborted || !(reason instanceof BerthError) || mayPass(reason)) {
      const { logger } = this.#options
      if (!signal.aborted) logger.warn({ err: reason, analysisId: analysis.id }, 'an analysis was interrupted')
      throw reason
    }
    await this.#end(analysis, 'failed', { failure: { code: reason.code, message: reason.message } })
  }

  async #end(
    analysis: StoredAnalysis,
    status: 'completed' | 'failed' | 'canceled' | 'expired',
    {
      result,
      failure,
    }: {
      readonly result?: AnalysisResult
      readonly failure?: { readonly code: string; readonly message: string }
    } = {},
  ): Promise<void> {
    const { analyses, runs, clock } = this.#options
    const finalResult = result ?? resultOf(await this.#known(analysis), null)
    const finishedAt = status === 'expired' ? analysis.expires_at : clock.now()
    await analyses.finish(analysis.id, endOf(status, finalResult, finishedAt, failure))
    await runs.forgetUnjudged(analysis.id)
  }

  #known(analysis: StoredAnalysis) {
    return knownResults(this.#options.runs, targetOf(analysis), analysis.allowed_proxy_countries)
  }
}
