import { z } from 'zod'
import { Timestamp } from '../common/time.ts'

const Json = z.unknown().meta({ override: {} })

export const SearchWarning = z
  .object({
    code: z.string(),
    message: z.string(),
    param: z.string().optional(),
    provider: z.string().optional(),
    result_id: z.string().optional(),
  })
  .meta({ id: 'SearchWarning' })
export type SearchWarning = z.infer<typeof SearchWarning>

export const ContentStatus = z.enum([
  ...(['ok', 'unavailable', 'blocked', 'timeout', 'unsupported_type', 'extraction_failed', 'error'] as const),
])
export type ContentStatus = z.infer<typeof ContentStatus>

const contentFields = {
  status: ContentStatus,
  text: z.string().optional().meta({ description: 'Only when the status is ok.' }),
  format: z.enum(['markdown', 'text']).optional(),
  method: z.enum(['provider', 'browser_curl', 'browser_render']).optional(),
  cache_status: z.enum(['hit', 'miss', 'bypass', 'unknown']).optional(),
  completeness: z.enum(['full_page', 'excerpt', 'unknown']).optional().meta({ description: 'Before truncation.' }),
  truncated: z.boolean().optional(),
  http_status: z.int().optional(),
  final_url: z.string().optional(),
  fetched_at: Timestamp.nullish(),
  extractor_version: z.string().optional(),
  error: z.object({ code: z.string(), message: z.string(), retryable: z.boolean() }).optional(),
}

export const ResultContent = z.object(contentFields).meta({ id: 'SearchResultContent' })
export type ResultContent = z.infer<typeof ResultContent>

export const SearchResult = z
  .object({
    id: z.string(),
    rank: z.int(),
    url: z.string(),
    title: z.string().nullish(),
    snippet: z.string().nullish(),
    source: z.string().nullish(),
    published_date: z.string().nullish(),
    additional_snippets: z.array(z.string()).optional(),
    content: ResultContent.optional(),
    raw: Json.optional(),
  })
  .meta({ id: 'SearchResult' })
export type SearchResult = z.infer<typeof SearchResult>

export const SearchAttempt = z
  .object({
    provider: z.string(),
    outcome: z.enum(['success', 'empty', 'error', 'timeout']),
    duration_ms: z.int(),
    error_code: z.string().optional(),
    retryable: z.boolean().optional(),
  })
  .meta({ id: 'SearchAttempt' })
export type SearchAttempt = z.infer<typeof SearchAttempt>

export const SearchUsage = z
  .object({
    content_fetches: z.int(),
    results_count: z.int(),
    cost: z.number().optional().meta({ description: 'In US dollars, if the provider reports it.' }),
  })
  .meta({ id: 'SearchUsage' })
export type SearchUsage = z.infer<typeof SearchUsage>

export const Search = z
  .object({
    id: z.string(),
    query: z.string(),
    provider: z.string().meta({ description: 'The provider of the results.' }),
    results: z.array(SearchResult),
    attempts: z.array(SearchAttempt),
    usage: SearchUsage,
    warnings: z.array(SearchWarning),
    expires_at: Timestamp,
    answer: z.string().nullish(),
    raw: Json.optional(),
  })
  .meta({ id: 'Search' })
export type Search = z.infer<typeof Search>

export const SearchContents = z
  .object({
    search_id: z.string(),
    contents: z.array(z.object({ result_id: z.string(), url: z.string(), ...contentFields })),
    usage: SearchUsage,
    warnings: z.array(SearchWarning),
  })
  .meta({ id: 'SearchContents' })
export type SearchContents = z.infer<typeof SearchContents>

export const portableParams = [
  ...(['country', 'language', 'recency', 'safe_search'] as const),
  ...(['start_date', 'end_date', 'include_domains', 'exclude_domains'] as const),
] as const
export type PortableParam = (typeof portableParams)[number]

const ParamSupport = z.object({
  support: z.enum(['native', 'emulated', 'unsupported']),
  notes: z.string().nullish(),
})
export type ParamSupport = z.infer<typeof ParamSupport>

export const SearchProvider = z
  .object({
    slug: z.string(),
    max_results_cap: z.int(),
    content: z.object({ freshness_control: z.boolean(), inline: z.boolean(), post_hoc: z.boolean() }),
    params: z.object(
      Object.fromEntries(portableParams.map((name) => [name, ParamSupport])) as Record<
        PortableParam,
        typeof ParamSupport
      >,
    ),
    provider_options: z.object({
      schema: Json,
      schema_ref: z.string(),
      examples: z.array(Json).optional(),
    }),
    notes: z.string().nullish(),
  })
  .meta({ id: 'SearchProvider' })
export type SearchProvider = z.infer<typeof SearchProvider>
