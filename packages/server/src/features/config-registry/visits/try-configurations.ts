import type { NoRecommendation } from '@berth/contract/config-registry/config-registry.ts'
import type { Configuration, Run } from '../analysis.ts'
import {
  costOf,
  directConfigurations,
  keyOf,
  offeredProxies,
  type ProxyOffer,
  proxyConfigurations,
  referenceConfiguration,
} from '../configurations.ts'
import { noRecommendation } from '../knowledge.ts'
import type { StoredAnalysis } from '../stored-analysis.ts'
import { type JudgedRun, judgeRuns } from './judge-runs.ts'
import { robotsName } from './robots.ts'
import type { SiteVisits } from './visit-site.ts'

const maxProxyRuns = 12

/** The results of visits. `verdict` is set when configurations make no difference. */
export interface SiteAnalysis {
  readonly runs: readonly JudgedRun[]
  readonly verdict: NoRecommendation | undefined
  readonly guidance: string | null
}

interface TryConfigurationsOptions {
  readonly analysis: StoredAnalysis
  readonly visits: SiteVisits
  readonly offers: readonly ProxyOffer[]
  /** The runs of an earlier server. */
  readonly earlier: readonly Run[]
  readonly keep: (run: Run) => Promise<void>
}

/**
 * Tries configurations until the cheapest one that works is known: first the cheapest and the most capable browser,
 * because their pages show what the page should be; then those in between if the cheapest is denied; then the
 * operator's proxies if every direct connection is denied.
 */
export async function tryConfigurations({
  analysis,
  visits,
  offers,
  earlier,
  keep,
}: TryConfigurationsOptions): Promise<SiteAnalysis> {
  const runs = new Map(earlier.map((run) => [keyOf(run.configuration), run]))
  const judged = () => judgeRuns([...runs.values()])
  const works = (configuration: Configuration) =>
    judged().some((run) => keyOf(run.configuration) === keyOf(configuration) && run.outcome === 'accessed')

  const attempt = async (configuration: Configuration): Promise<'disallowed' | 'unreadable' | undefined> => {
    if (runs.has(keyOf(configuration))) return undefined
    const visit = await visits.visit(configuration)
    if (typeof visit === 'string') return visit
    const run = { configuration, visit }
    await keep(run)
    runs.set(keyOf(configuration), run)
    return undefined
  }

  const [cheapest, ...others] = directConfigurations as [Configuration, ...Configuration[]]
  for (const configuration of [cheapest, referenceConfiguration]) {
    const robots = await attempt(configuration)
    if (robots) return { runs: judged(), verdict: againstRobots(robots), guidance: null }
  }
  const pointless = sameForAll(judged())
  if (pointless) return { runs: judged(), verdict: pointless, guidance: null }

  for (const configuration of others) {
    if (judged().some((run) => run.outcome === 'accessed' && costOf(run.configuration) < costOf(configuration))) break
    await attempt(configuration)
  }
  const proxies = proxyConfigurations(offeredProxies(offers, analysis.allowed_proxy_countries)).slice(0, maxProxyRuns)
  for (const configuration of proxies) {
    if (judged().some(({ outcome }) => outcome === 'accessed')) break
    await attempt(configuration)
    if (works(configuration)) break
  }
  return { runs: judged(), verdict: withoutProxies(judged(), { analysis, offers }), guidance: guidanceOf(judged()) }
}

function againstRobots(robots: 'disallowed' | 'unreadable'): NoRecommendation {
  const message =
    robots === 'disallowed'
      ? `The robots.txt of the site does not allow this page to be visited by programs (${robotsName}).`
      : 'The robots.txt of the site cannot be read, which counts as a no.'
  return noRecommendation('target_not_evaluable', message)
}

/** A verdict that no browser setting changes. */
function sameForAll(runs: readonly JudgedRun[]): NoRecommendation | undefined {
  const evaluable = (message: string) => noRecommendation('target_not_evaluable', message)
  if (runs.every(({ verdict }) => verdict === 'unreachable')) {
    const reason = runs[0]?.visit.failure ?? 'no answer'
    return evaluable(`Sessions cannot reach the target: ${reason}.`)
  }
  if (runs.every(({ verdict }) => verdict === 'missing'))
    return evaluable(`There is no such page: the site answers ${runs[0]?.visit.status}.`)
  return undefined
}

/** Nothing works, and proxies that might work were not allowed. */
function withoutProxies(
  runs: readonly JudgedRun[],
  { analysis, offers }: { readonly analysis: StoredAnalysis; readonly offers: readonly ProxyOffer[] },
): NoRecommendation | undefined {
  const { allowed_proxy_countries: countries } = analysis
  if (runs.some(({ outcome }) => outcome === 'accessed') || !runs.some(({ outcome }) => outcome === 'blocked'))
    return undefined
  if (offeredProxies(offers, null).length === offeredProxies(offers, countries).length) return undefined
  return noRecommendation(
    'proxy_restricted',
    'Nothing that the request allows works; the operator has proxies in other countries, which were not tried.',
  )
}

function guidanceOf(runs: readonly JudgedRun[]): string | null {
  const accessed = runs.filter(({ outcome }) => outcome === 'accessed')
  if (accessed.length === 0) return null
  if (accessed.every(({ verdict }) => verdict === 'login wall'))
    return 'Every browser meets a login: settings do not change that, a profile or credentials may.'
  if (accessed.every(({ verdict }) => verdict === 'payment wall'))
    return 'Every browser meets a request for payment: settings do not change that.'
  return null
}
