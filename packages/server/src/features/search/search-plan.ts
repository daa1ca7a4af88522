import { type PortableParam, portableParams, type SearchWarning } from '@berth/contract/search/search.ts'
import type { SearchRequest } from '@berth/contract/search/search-request.ts'
import type {
  Note,
  PortableParams,
  Provider,
  ProviderHit,
  ProviderQuery,
  ProviderRequest,
} from './providers/provider.ts'

const defaultMaxResults = 10
/** Parameters that a search can ignore, unlike filters. */
const preferences: readonly PortableParam[] = ['country', 'language', 'safe_search']

/** The request to one provider, and the parameters that are not applied exactly. */
export interface SearchPlan {
  readonly provider: Provider
  readonly query: ProviderQuery
  readonly request: ProviderRequest
  readonly warnings: readonly SearchWarning[]
  /** Selects the requested results from the provider's response. */
  readonly select: (hits: readonly ProviderHit[]) => readonly ProviderHit[]
}

interface PlanOptions {
  readonly request: SearchRequest
  readonly options: Readonly<Record<string, unknown>>
  readonly now: Date
}

export function planSearch(provider: Provider, { request, options, now }: PlanOptions): SearchPlan {
  const warnings: SearchWarning[] = []
  const note: Note = (code, param, message) => warnings.push({ code, message, param, provider: provider.slug })
  const maxResults = countOf(provider, request, options, note)
  const params = supportedParams(provider, request, note)
  const query: ProviderQuery = {
    text: request.query,
    maxResults,
    params,
    options: withoutCount(options, provider.countOption),
    content: wantedContent(request),
    now,
  }
  const planned = provider.plan(query, note)
  return {
    provider,
    query,
    request: planned,
    warnings,
    select: (hits) => hits.filter((hit) => isWanted(hit.url, request)).slice(0, maxResults),
  }
}

/** No content is requested from the provider if only a browser may fetch it, or nobody. */
function wantedContent({ content }: SearchRequest): ProviderQuery['content'] {
  if (content === undefined) return undefined
  if (content === true) return { format: 'markdown', maxAgeHours: undefined }
  return content.source === 'browser' ? undefined : { format: content.format, maxAgeHours: content.max_age_hours }
}

/** A native limit can lower the requested number of results but not raise it. */
function countOf(provider: Provider, { max_results }: SearchRequest, options: object, note: Note): number {
  const { maxResultsCap, countOption } = provider
  const native = countOption.reduce<unknown>(
    (value, name) => (value as Record<string, unknown> | undefined)?.[name],
    options,
  )
  const wanted = Math.min(
    max_results ?? defaultMaxResults,
    countOption.length > 0 && typeof native === 'number' ? native : Number.POSITIVE_INFINITY,
  )
  if (wanted > maxResultsCap && max_results !== undefined) {
    note('max_results_clamped', 'max_results', `This provider gives ${maxResultsCap} results at most.`)
  }
  return Math.min(wanted, maxResultsCap)
}

/** Removes the native limit, because the number of results is already decided. */
function withoutCount(
  options: Readonly<Record<string, unknown>>,
  [name, ...rest]: readonly string[],
): Record<string, unknown> {
  if (name === undefined || options[name] === undefined) return { ...options }
  const { [name]: inner, ...others } = options
  if (rest.length === 0) return others
  return { ...others, [name]: withoutCount(inner as Record<string, unknown>, rest) }
}

function supportedParams(provider: Provider, request: SearchRequest, note: Note): PortableParams {
  const set = setParams(request, note)
  const supported: Partial<Record<PortableParam, unknown>> = {}
  for (const param of portableParams) {
    if (set[param] === undefined) continue
    if (provider.params[param].support === 'unsupported') {
      // The results are filtered by domain for every provider.
      if (param === 'include_domains' || param === 'exclude_domains') {
        note('filter_emulated', param, 'The results are filtered.')
        continue
      }
      const code = preferences.includes(param) ? 'preference_unsupported' : 'param_unsupported'
      note(code, param, 'This provider has no such parameter; the results are not limited by it.')
      continue
    }
    supported[param] = set[param]
  }
  return supported as PortableParams
}

function setParams(request: SearchRequest, note: Note): PortableParams {
  const { country, language, safe_search, recency, start_date, end_date, include_domains, exclude_domains } = request
  const hasDates = start_date !== undefined || end_date !== undefined
  if (recency && hasDates) {
    const param = start_date === undefined ? 'end_date' : 'start_date'
    note('date_filter_overridden', param, 'recency takes the place of start_date and end_date.')
  }
  return {
    ...{ country, language, safe_search, recency },
    ...(!recency && { start_date, end_date }),
    // An empty list restricts nothing.
    include_domains: include_domains?.length ? include_domains : undefined,
    exclude_domains: exclude_domains?.length ? exclude_domains : undefined,
  }
}

function isWanted(url: string, { include_domains = [], exclude_domains = [] }: SearchRequest): boolean {
  const parsed = URL.parse(url)
  if (!parsed || !/^https?:$/.test(parsed.protocol)) return false
  const isIn = (domain: string) => isBelow(parsed.hostname, domain)
  if (include_domains.length > 0 && !include_domains.some(isIn)) return false
  return !exclude_domains.some(isIn)
}

/** Whether it is the host itself or a subdomain. */
function isBelow(host: string, domain: string): boolean {
  const ascii = URL.parse(`http://${domain}`)?.hostname ?? domain
  return host === ascii || host.endsWith(`.${ascii}`)
}
