import { BerthError } from '@berth/contract/errors.ts'
import type { ProviderSlug } from '@berth/contract/search/provider-options.ts'
import type { SearchWarning } from '@berth/contract/search/search.ts'
import type { ProviderTarget, SearchRequest } from '@berth/contract/search/search-request.ts'
import { knownProviders, neededSetting, type ProviderAccess } from './providers/known-providers.ts'
import type { Candidate, FallbackReason } from './run-strategy.ts'
import { planSearch } from './search-plan.ts'

export interface Candidates {
  readonly candidates: readonly Candidate[]
  readonly fallbackOn: readonly FallbackReason[]
  /** Warnings about named providers that are not used. */
  readonly warnings: readonly SearchWarning[]
}

/** The providers that the strategy of a request uses, in order. Throws if there are none. */
export function chooseCandidates(request: SearchRequest, providers: readonly ProviderAccess[], now: Date): Candidates {
  const { strategy } = request
  const targets = targetsOf(request, providers)
  const warnings: SearchWarning[] = []
  const setUp: Candidate[] = []
  for (const { provider, options = {} } of targets) {
    const access = providers.find((known) => known.provider.slug === provider)
    if (access) setUp.push({ access, plan: planSearch(access.provider, { request, options, now }) })
    else warnings.push(ineligible(provider, `${provider} is not set up on this service.`))
  }
  if (setUp.length === 0) throw nobody(targets, providers)

  const exact = request.strict_params ? setUp.filter(({ plan }) => plan.warnings.length === 0) : setUp
  for (const { access, plan } of setUp) {
    if (exact.some((candidate) => candidate.access === access)) continue
    warnings.push(ineligible(access.provider.slug, plan.warnings[0]?.message ?? '', plan.warnings[0]?.param))
  }
  if (exact.length === 0) throw notServable(setUp)
  return {
    candidates: strategy.type === 'auto' ? byCapability(exact) : exact,
    fallbackOn: strategy.type === 'pinned' ? [] : strategy.fallback_on,
    // With `auto` the caller has not named the providers that are left out, so there are no warnings.
    warnings: strategy.type === 'auto' ? [] : warnings,
  }
}

function targetsOf({ strategy }: SearchRequest, providers: readonly ProviderAccess[]): readonly ProviderTarget[] {
  switch (strategy.type) {
    case 'pinned':
      return [strategy.provider]
    case 'fallback':
      return strategy.providers
    case 'auto': {
      const optionsOf = (slug: ProviderSlug) =>
        (strategy.provider_options as readonly ProviderTarget[] | undefined)?.find(({ provider }) => provider === slug)
          ?.options
      return providers.map(({ provider: { slug } }) => ({ provider: slug, options: optionsOf(slug) }))
    }
  }
}

/** Sorted by how much of the request they support, then by the operator's order. */
function byCapability(candidates: readonly Candidate[]): readonly Candidate[] {
  const cost = ({ plan, access }: Candidate) =>
    plan.warnings.length + (plan.query.content && !access.provider.inlineContent ? 0.5 : 0)
  return candidates.toSorted((one, other) => cost(one) - cost(other))
}

function ineligible(provider: string, message: string, param?: string): SearchWarning {
  return { code: 'provider_ineligible', message, provider, ...(param && { param }) }
}

function nobody(targets: readonly ProviderTarget[], providers: readonly ProviderAccess[]): BerthError {
  const named = targets.map(({ provider }) => provider)
  const settings = knownProviders.filter(({ slug }) => named.length === 0 || named.includes(slug)).map(neededSetting)
  const what = providers.length === 0 ? 'No search provider is set up' : `${named.join(', ')}: not set up`
  const how = settings.length > 0 ? ` Its operator sets one of ${settings.join(', ')}.` : ''
  return new BerthError('search_failed', { reason: `${what} on this service.${how}` })
}

function notServable(candidates: readonly Candidate[]): BerthError {
  const faults = candidates.flatMap(({ plan }) =>
    plan.warnings.map(({ code, message, param, provider }) => ({ code, message: `${provider}: ${param}: ${message}` })),
  )
  const [first] = faults
  return new BerthError(
    'search_params_not_servable',
    { reason: `no provider supports every parameter exactly. ${first?.message ?? ''}` },
    { faults },
  )
}
