import { BerthError } from '@berth/contract/errors.ts'
import type { SearchAttempt, SearchWarning } from '@berth/contract/search/search.ts'
import type { ProviderAccess } from './providers/known-providers.ts'
import type { ProviderAnswer, ProviderHit } from './providers/provider.ts'
import { askProvider, ProviderFailure } from './providers/provider-client.ts'
import type { SearchPlan } from './search-plan.ts'

export type FallbackReason = 'error' | 'timeout' | 'empty'

export interface Candidate {
  readonly access: ProviderAccess
  readonly plan: SearchPlan
}

export interface ServedSearch extends Pick<ProviderAnswer, 'answer' | 'cost'> {
  readonly candidate: Candidate
  readonly hits: readonly ProviderHit[]
  readonly raw: unknown
  readonly attempts: readonly SearchAttempt[]
  readonly warnings: readonly SearchWarning[]
}

interface StrategyOptions {
  readonly candidates: readonly Candidate[]
  readonly fallbackOn: readonly FallbackReason[]
  readonly attemptLimitMilliseconds: number
  /** The time limit of the whole search. No new attempt starts after it. */
  readonly deadline: AbortSignal
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal
}

/**
 * Tries one provider after another until one has results. Results of several are never mixed. If none has results,
 * returns the first valid response, although it is empty, or rejects with `search_failed` if there is none.
 */
export async function runStrategy(options: StrategyOptions): Promise<ServedSearch> {
  const { candidates, fallbackOn, deadline } = options
  const attempts: SearchAttempt[] = []
  const failures: SearchWarning[] = []
  let empty: Omit<ServedSearch, 'attempts' | 'warnings'> | undefined
  for (const candidate of candidates) {
    if (deadline.aborted) break
    const { served, attempt, message } = await tryProvider(candidate, options)
    attempts.push(attempt)
    if (served && served.hits.length > 0) return { ...served, attempts, warnings: served.candidate.plan.warnings }
    empty ??= served
    if (message !== undefined) failures.push({ code: 'fallback_failed', message, provider: attempt.provider })
    if (!goesOn(attempt, fallbackOn)) break
  }
  if (!empty) throw failed(attempts, failures)
  return { ...empty, attempts, warnings: [...empty.candidate.plan.warnings, ...failures] }
}

function goesOn({ outcome, retryable }: SearchAttempt, fallbackOn: readonly FallbackReason[]): boolean {
  if (outcome === 'success' || retryable === false) return false
  return fallbackOn.includes(outcome)
}

interface Tried {
  readonly attempt: SearchAttempt
  readonly served?: Omit<ServedSearch, 'attempts' | 'warnings'>
  readonly message?: string
}

async function tryProvider(candidate: Candidate, options: StrategyOptions): Promise<Tried> {
  const { access, plan } = candidate
  const { deadline, signal, attemptLimitMilliseconds } = options
  const provider = access.provider.slug
  const begin = performance.now()
  const durationOf = () => Math.round(performance.now() - begin)
  try {
    const limit = AbortSignal.any([deadline, signal, AbortSignal.timeout(attemptLimitMilliseconds)])
    const raw = await askProvider(access, plan.request, limit)
    const { hits: all, ...answer } = readAnswer(plan, raw)
    const hits = plan.select(all)
    const outcome = hits.length > 0 ? 'success' : 'empty'
    const attempt: SearchAttempt = { provider, outcome, duration_ms: durationOf() }
    return { attempt, served: { candidate, hits, raw, ...answer } }
  } catch (error) {
    // The caller has disconnected, so no further provider is tried.
    if (signal.aborted) throw signal.reason
    if (!(error instanceof ProviderFailure)) throw error
    const { code, isRetryable: retryable, message } = error
    const outcome = code === 'timeout' ? 'timeout' : 'error'
    return { message, attempt: { provider, outcome, duration_ms: durationOf(), error_code: code, retryable } }
  }
}

function readAnswer({ provider, query }: SearchPlan, raw: unknown): ProviderAnswer {
  try {
    return provider.read(raw, query)
  } catch (cause) {
    throw new ProviderFailure(provider.slug, 'invalid_response', { cause })
  }
}

function failed(attempts: readonly SearchAttempt[], failures: readonly SearchWarning[]): BerthError {
  const faults = attempts.map(({ provider, outcome, error_code, duration_ms }) => ({
    code: error_code ?? outcome,
    message: `${provider}: ${outcome} after ${duration_ms} ms`,
  }))
  const [last] = failures.slice(-1)
  const reason = last
    ? `No provider has answered the search: ${last.message}.`
    : 'The time was over before a provider was asked.'
  return new BerthError('search_failed', { reason }, { faults })
}
