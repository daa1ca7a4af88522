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
/** What a search may be made without, unlike a filter. */
const preferences: readonly PortableParam[] = ['country', 'language', 'safe_search']

/** How one provider is asked for what a caller wants, and what of it is not honoured exactly. */
export interface SearchPlan {
  readonly provider: Provider
  readonly query: ProviderQuery
  readonly request: ProviderRequest
  readonly warnings: readonly SearchWarning[]
  /** Of what the provider answers, what the caller has asked for. */
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

/** A browser alone is to give it, or nobody. */
function wantedContent({ content }: SearchRequest): ProviderQuery['content'] {
  if (content === undefined) return undefined
  if (content === true) return { format: 'markdown', maxAgeHours: undefined }
  return content.source === 'browser' ? undefined : { format: content.format, maxAgeHours: content.max_age_hours }
}

/** A native count lowers what is asked for, and never raises it. */
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

/** The number of results has been decided on. */
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
      // The results are filtered by domain, whoever finds them.
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

/** The host itself, or a subdomain of it. */
function isBelow(host: string, domain: string): boolean {
  const ascii = URL.parse(`http://${domain}`)?.hostname ?? domain
  return host === ascii || host.endsWith(`.${ascii}`)
}
