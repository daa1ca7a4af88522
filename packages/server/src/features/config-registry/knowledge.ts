import type {
  MatchScope,
  NoRecommendation,
  Recommendation,
  RecommendationResult,
  Target,
} from '@berth/contract/config-registry/config-registry.ts'
import { browserOf, costOf, isAllowed, keyOf, proxyOf } from './configurations.ts'
import type { Observed, RunStore } from './run-store.ts'

/** Narrowest first. */
const scopes: readonly MatchScope[] = ['exact', 'host', 'domain']

export interface Known {
  readonly recommendation: RecommendationResult | null
  readonly workingConfigurations: readonly Recommendation[]
}

/**
 * What is known about a target, from the analyses of all projects. The narrowest scope with a conclusive run decides.
 * For wider scopes, only the name of the scope is returned, so that pages which others have analysed stay private.
 */
export async function knownResults(
  runs: RunStore,
  target: Target,
  countries: readonly string[] | null,
): Promise<Known> {
  let hasInconclusive = false
  for (const scope of scopes) {
    const observed = await runs.observed(scope, target)
    if (observed.some(isJudged)) return decide(observed, scope, { target, countries })
    hasInconclusive ||= observed.length > 0
  }
  const inconclusive = noRecommendation('inconclusive', 'The site was visited, and no visit could be judged.')
  return { recommendation: hasInconclusive ? inconclusive : null, workingConfigurations: [] }
}

export function noRecommendation(code: NoRecommendation['code'], message: string): NoRecommendation {
  return { type: 'no_recommendation', code, message }
}

function decide(
  observed: readonly Observed[],
  scope: MatchScope,
  { target, countries }: { readonly target: Target; readonly countries: readonly string[] | null },
): Known {
  const working = observed.filter(works)
  const allowed = working
    .filter(({ configuration }) => isAllowed(configuration, countries))
    .toSorted((one, other) => byCost(one, other))
  const workingConfigurations = allowed.map((one) => recommendationOf(one, scope, target))
  const [cheapest] = workingConfigurations
  if (cheapest) return { recommendation: cheapest, workingConfigurations }
  const recommendation =
    working.length > 0
      ? noRecommendation('proxy_restricted', 'What works is a proxy in a country that the request does not allow.')
      : noRecommendation('no_working_configuration', 'Every configuration that was tried was kept out.')
  return { recommendation, workingConfigurations: [] }
}

function isJudged({ accessed, blocked }: Observed): boolean {
  return accessed + blocked > 0
}

/** Whether most of the latest conclusive runs reached the target: a site may change, so older runs are ignored. */
function works({ latest }: Observed): boolean {
  const accessed = latest.filter((outcome) => outcome === 'accessed').length
  return accessed * 2 > latest.length
}

function byCost(one: Observed, other: Observed): number {
  const [first, second] = [one.configuration, other.configuration]
  return costOf(first) - costOf(second) || (keyOf(first) < keyOf(second) ? -1 : 1)
}

function recommendationOf(
  { configuration, accessed, blocked, inconclusive, lastObservedAt, lastSupportedAt }: Observed,
  scope: MatchScope,
  { normalized, host, domain }: Target,
): Recommendation {
  const judged = accessed + blocked
  return {
    type: 'recommendation',
    browser: browserOf(configuration),
    proxy: proxyOf(configuration),
    evidence: {
      accessed,
      blocked,
      inconclusive,
      sample_size: judged,
      run_count: judged + inconclusive,
      success_rate: accessed / judged,
      last_observed_at: lastObservedAt.toISOString(),
      ...(lastSupportedAt && { last_supported_at: lastSupportedAt.toISOString() }),
    },
    match_scope: scope,
    matched_target: { exact: normalized, host, domain }[scope],
  }
}
