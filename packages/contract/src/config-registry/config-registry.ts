import { z } from 'zod'
import { BrowserViewport } from '../browsers/viewport.ts'
import { PageQuery } from '../common/page.ts'
import { SearchText } from '../common/text.ts'
import { Timestamp } from '../common/time.ts'
import { targetingFields } from '../proxies/targeting.ts'

const maxUrlLength = 2048
const maxIntentLength = 4000
const maxCountries = 50

const TargetUrl = z
  .string()
  .max(maxUrlLength, { error: `must have at most ${maxUrlLength} characters` })
  .refine((text) => isWebAddress(text), { error: 'must be an http or https address without credentials' })
  // A character outside ASCII becomes several when it is encoded.
  .refine((text) => (URL.parse(text)?.href.length ?? 0) <= maxUrlLength, {
    error: `must have at most ${maxUrlLength} characters when it is percent-encoded`,
  })
  .meta({ description: 'The page to reach. Query and fragment are ignored when targets are compared.' })

export const LookupRequest = z
  .object({
    url: TargetUrl,
    allowed_proxy_countries: z.array(targetingFields.country.unwrap()).max(maxCountries).optional().meta({
      description: 'ISO 3166 codes. Absent: any country. An empty list: no proxy at all.',
    }),
  })
  .meta({ id: 'ConfigRegistryLookupRequest' })

export const ResolveRequest = LookupRequest.extend({
  intent: z
    .string()
    .transform((intent) => intent.trim())
    .refine((intent) => intent !== '', { error: 'must not be empty' })
    .refine((intent) => [...intent].length <= maxIntentLength, {
      error: `must have at most ${maxIntentLength} characters`,
    })
    .optional()
    .meta({
      description: 'The task to do at the target, whose URL must then be https.',
      override: { type: 'string', minLength: 1, maxLength: maxIntentLength },
    }),
})
  .superRefine(({ url, intent }, context) => {
    if (intent !== undefined && !/^https:/i.test(url.trim()))
      context.addIssue({ code: 'custom', path: ['url'], message: 'must be https when there is an intent' })
  })
  .meta({ id: 'ConfigRegistryResolveRequest' })

export const Target = z
  .object({
    domain: z.string().meta({ description: 'The registrable domain, or the address if the host is one.' }),
    host: z.string(),
    normalized: z.string().meta({ description: 'Scheme, host, port and path.' }),
  })
  .meta({ id: 'ConfigRegistryTarget' })
export type Target = z.infer<typeof Target>

export const AnalysisStatus = z
  .enum(['running', 'completed', 'failed', 'canceled', 'expired'])
  .meta({ id: 'ConfigRegistryAnalysisStatus' })
export type AnalysisStatus = z.infer<typeof AnalysisStatus>

export const Analysis = z
  .object({
    id: z.string(),
    created_at: Timestamp,
    expires_at: Timestamp,
    finished_at: Timestamp.nullable().meta({ description: 'Null while it runs.' }),
    failure: z
      .object({ code: z.string(), message: z.string() })
      .nullable()
      .meta({ description: 'Set for an analysis that failed or was canceled.' }),
    status: AnalysisStatus,
    intent: z.string().optional(),
  })
  .meta({ id: 'ConfigRegistryAnalysis' })

/** The types of proxies that an operator may provide, cheapest first, as the official clients name them. */
export const registryProxyTypes = ['isp', 'residential', 'mobile'] as const
export type RegistryProxyType = (typeof registryProxyTypes)[number]

export const RegistryBrowser = z
  .object({ gpu: z.boolean(), headless: z.boolean(), stealth: z.boolean(), viewport: BrowserViewport })
  .meta({ id: 'ConfigRegistryBrowser' })
export type RegistryBrowser = z.infer<typeof RegistryBrowser>

export const RegistryProxy = z
  .discriminatedUnion('mode', [
    z.object({ mode: z.literal('direct') }),
    z.object({
      mode: z.literal('managed'),
      create: z
        .object({
          type: z.enum(registryProxyTypes),
          config: z.object({ country: z.string().optional() }).optional(),
        })
        .meta({ description: 'A body for POST /proxies. Create the proxy once and refer to it by its id.' }),
    }),
  ])
  .meta({ id: 'ConfigRegistryProxy' })
export type RegistryProxy = z.infer<typeof RegistryProxy>

export const Evidence = z
  .object({
    accessed: z.int(),
    blocked: z.int(),
    inconclusive: z.int(),
    sample_size: z.int().meta({ description: 'The number of conclusive runs.' }),
    run_count: z.int(),
    success_rate: z.number().min(0).max(1).meta({ description: 'The share of conclusive runs that succeeded.' }),
    last_observed_at: Timestamp,
    last_supported_at: Timestamp.optional().meta({ description: 'The last run that reached the target.' }),
  })
  .meta({ id: 'ConfigRegistryEvidence' })

export const MatchScope = z.enum(['exact', 'host', 'domain'])
export type MatchScope = z.infer<typeof MatchScope>

export const Recommendation = z
  .object({
    type: z.literal('recommendation'),
    browser: RegistryBrowser,
    proxy: RegistryProxy,
    evidence: Evidence,
    match_scope: MatchScope,
    matched_target: z.string().meta({ description: 'The normalized target, the host or the domain.' }),
  })
  .meta({ id: 'ConfigRegistryRecommendation' })
export type Recommendation = z.infer<typeof Recommendation>

export const NoRecommendation = z
  .object({
    type: z.literal('no_recommendation'),
    code: z.enum(['proxy_restricted', 'target_not_evaluable', 'no_working_configuration', 'inconclusive']),
    message: z.string(),
  })
  .meta({ id: 'ConfigRegistryNoRecommendation' })
export type NoRecommendation = z.infer<typeof NoRecommendation>

export const RecommendationResult = z.discriminatedUnion('type', [Recommendation, NoRecommendation])
export type RecommendationResult = z.infer<typeof RecommendationResult>

/** What is known about a target. */
const knowledge = {
  target: Target,
  recommendation: RecommendationResult.nullable().meta({ description: 'Null when nothing is known.' }),
  working_configurations: z.array(Recommendation).meta({ description: 'The cheapest first.' }),
  guidance: z.string().nullable(),
}

export const LookupResponse = z.object(knowledge).meta({ id: 'ConfigRegistryLookupResponse' })
export type LookupResponse = z.infer<typeof LookupResponse>

export const WorkloadOutcome = z.enum([
  'completed',
  'turn_limit',
  'auth_required',
  'payment_required',
  'blocked',
  'error',
])
export type WorkloadOutcome = z.infer<typeof WorkloadOutcome>

export const ConfigRegistryResponse = z
  .object({
    ...knowledge,
    analysis: Analysis.nullable().meta({ description: 'Null when no analysis was started.' }),
    workload_outcome: WorkloadOutcome.nullable().meta({
      description: 'The outcome of the intent. Null without an intent, or if no model is configured.',
    }),
  })
  .meta({ id: 'ConfigRegistryResponse' })
export type ConfigRegistryResponse = z.infer<typeof ConfigRegistryResponse>

export const RecommendationSummary = z
  .object({
    target: z.string(),
    analysis_id: z.string(),
    analysis_status: AnalysisStatus,
    last_requested_at: Timestamp,
    recommendation: Recommendation.nullable(),
    recommended_config_label: z.string().nullable(),
    success_rate: z.number().nullable(),
  })
  .meta({ id: 'ConfigRegistryRecommendationSummary' })
export type RecommendationSummary = z.infer<typeof RecommendationSummary>

export const AnalysisSummary = z
  .object({ analysis: Analysis, target: Target })
  .meta({ id: 'ConfigRegistryAnalysisSummary' })
export type AnalysisSummary = z.infer<typeof AnalysisSummary>

const Search = SearchText.optional().meta({
  description: 'Text to find in the target. Case is ignored. For a URL, its registrable domain is used.',
})

export const AnalysisListQuery = PageQuery.extend({ search: Search })

export const sortFields = [
  'target',
  'analysis_status',
  'recommended_config',
  'last_requested_at',
  'success_rate',
] as const
export type SortField = (typeof sortFields)[number]

/** An empty value means the default. */
const orDefault = <const Value extends string>(values: readonly [Value, ...Value[]], otherwise: Value) =>
  z
    .preprocess((text) => (text === '' ? undefined : text), z.enum(values).default(otherwise))
    .meta({ override: { type: 'string', enum: [...values], default: otherwise } })

export const RecommendationListQuery = PageQuery.extend({
  search: Search,
  sort_by: orDefault(sortFields, 'last_requested_at'),
  sort_order: orDefault(['asc', 'desc'], 'desc'),
})

function isWebAddress(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && ['http:', 'https:'].includes(url.protocol) && !url.username && !url.password
}
