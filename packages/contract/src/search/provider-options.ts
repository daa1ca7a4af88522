import { z } from 'zod'

/*
 * The options of each search provider beyond the portable parameters, under the provider's own names. Unknown names are
 * rejected: a misspelled filter would silently filter nothing.
 */

const count = z.int().min(1)
const words = z.array(z.string().min(1)).max(200)

const Brave = z
  .strictObject({
    count: count.optional(),
    extra_snippets: z.boolean().optional(),
    goggles: z.string().optional(),
    goggles_id: z.string().optional().meta({ deprecated: true }),
    include_fetch_metadata: z.boolean().optional(),
    offset: z.int().min(0).max(9).optional(),
    operators: z.string().optional(),
    result_filter: z.string().optional(),
    search_lang: z.string().optional(),
    spellcheck: z.boolean().optional(),
    ui_lang: z.string().optional(),
    units: z.enum(['metric', 'imperial']).optional(),
  })
  .meta({ id: 'BraveSearchOptions' })

const Exa = z
  .strictObject({
    category: z.string().optional(),
    compliance: z.string().optional(),
    contents: z.strictObject({ highlights: z.boolean().optional(), text: z.boolean().optional() }).optional(),
    maxAgeHours: z.number().optional(),
    numResults: count.optional(),
    type: z.enum(['auto', 'fast', 'instant']).optional(),
  })
  .meta({ id: 'ExaSearchOptions' })

const usDate = z.string().regex(/^\d{1,2}\/\d{1,2}\/\d{4}$/, { error: 'must be a date such as 12/31/2026' })

const Perplexity = z
  .strictObject({
    last_updated_after_filter: usDate.optional(),
    last_updated_before_filter: usDate.optional(),
    max_results: count.optional(),
    max_tokens: count.optional(),
    max_tokens_per_page: count.optional(),
    query: z.array(z.string().min(1)).min(1).optional(),
    search_context_size: z.enum(['low', 'medium', 'high']).optional(),
    search_language_filter: z.array(z.string()).max(20).optional(),
  })
  .meta({ id: 'PerplexitySearchOptions' })

const Parallel = z
  .strictObject({
    advanced_settings: z
      .strictObject({
        excerpt_settings: z.strictObject({ max_chars_per_result: count.nullish() }).optional(),
        fetch_policy: z
          .strictObject({
            disable_cache_fallback: z.boolean().optional(),
            max_age_seconds: z.int().min(600).nullish(),
            timeout_seconds: z.number().positive().nullish(),
          })
          .optional(),
        location: z.string().nullish(),
        max_results: count.nullish(),
        source_policy: z
          .strictObject({
            after_date: z.iso.date().nullish(),
            exclude_domains: words.optional(),
            include_domains: words.optional(),
          })
          .refine((policy) => (policy.exclude_domains?.length ?? 0) + (policy.include_domains?.length ?? 0) <= 200, {
            error: 'must have at most 200 domains',
          })
          .optional(),
      })
      .optional(),
    client_model: z.string().optional(),
    max_chars_total: count.optional(),
    mode: z.enum(['turbo', 'fast', 'basic', 'advanced']).optional(),
    objective: z.string().optional(),
    search_queries: z.array(z.string().min(1)).min(1).optional(),
    session_id: z.string().optional(),
  })
  .meta({ id: 'ParallelSearchOptions' })

const Valyu = z
  .strictObject({
    fast_mode: z.boolean().optional(),
    historical_cache: z.boolean().optional(),
    include_abstracts: z.boolean().optional(),
    instructions: z.string().optional(),
    is_tool_call: z.boolean().optional(),
    max_num_results: count.optional(),
    max_price: z.number().nonnegative().optional(),
    relevance_threshold: z.number().min(0).max(1).optional(),
    response_length: z.enum(['short', 'medium', 'large', 'max']).optional(),
    search_type: z.string().optional(),
    source_biases: z.array(z.string()).optional(),
    url_only: z.boolean().optional(),
  })
  .meta({ id: 'ValyuSearchOptions' })

const You = z
  .strictObject({
    boost_domains: words.optional(),
    count: count.optional(),
    crawl_timeout: count.optional(),
    extraction: z
      .strictObject({
        extraction_mode: z.enum(['highlights', 'full_page']),
        full_page: z.strictObject({ extraction_formats: z.array(z.enum(['html', 'markdown'])).optional() }).optional(),
      })
      .optional(),
    knowledge: z.enum(['core']).optional(),
    language: z.string().optional(),
    offset: z.int().min(0).max(9).optional(),
  })
  .meta({ id: 'YouSearchOptions' })

const Tavily = z
  .strictObject({
    auto_parameters: z.boolean().optional(),
    chunks_per_source: z.int().min(1).max(3).optional(),
    exact_match: z.boolean().optional(),
    filter_by_language: z.boolean().optional(),
    include_answer: z.union([z.boolean(), z.enum(['basic', 'advanced'])]).optional(),
    include_domains_mode: z.enum(['filter', 'boost']).optional(),
    include_favicon: z.boolean().optional(),
    include_image_descriptions: z.boolean().optional(),
    include_images: z.boolean().optional(),
    include_raw_content: z.union([z.boolean(), z.enum(['markdown', 'text'])]).optional(),
    language: z.string().optional(),
    max_results: count.optional(),
    search_depth: z.enum(['advanced', 'basic', 'fast', 'ultra-fast']).optional(),
    topic: z.enum(['general', 'news', 'finance']).optional(),
  })
  .meta({ id: 'TavilySearchOptions' })

const zeroOrOne = z.union([z.literal(0), z.literal(1)])

const SerpApi = z
  .strictObject({
    engine: z.literal('google'),
    device: z.enum(['desktop', 'mobile', 'tablet']).optional(),
    filter: zeroOrOne.optional(),
    gl: z.string().optional(),
    google_domain: z.string().optional(),
    hl: z.string().optional(),
    location: z.string().optional(),
    nfpr: zeroOrOne.optional(),
    no_cache: z.boolean().optional(),
    num: count.optional(),
    safe: z.enum(['active', 'off']).optional(),
    start: z.int().min(0).optional(),
    tbm: z.string().optional(),
    tbs: z.string().optional(),
  })
  .meta({ id: 'SerpApiSearchOptions' })

const Context = z
  .strictObject({
    country: z.string().optional(),
    excludeDomains: words.optional(),
    includeDomains: words.optional(),
    freshness: z.enum(['last_24_hours', 'last_week', 'last_month', 'last_year']).optional(),
    markdownOptions: z
      .strictObject({
        enabled: z.boolean().optional(),
        includeFrames: z.boolean().optional(),
        includeImages: z.boolean().optional(),
        includeLinks: z.boolean().optional(),
        maxAgeMs: z.int().min(0).optional(),
        pdf: z.strictObject({ shouldParse: z.boolean().optional() }).optional(),
        shortenBase64Images: z.boolean().optional(),
        timeoutMS: count.optional(),
        useMainContentOnly: z.boolean().optional(),
        waitForMs: z.int().min(0).optional(),
      })
      .optional(),
    numResults: count.optional(),
    queryFanout: z.boolean().optional(),
    tags: z.array(z.string()).optional(),
    timeoutMS: count.optional(),
  })
  .meta({ id: 'ContextSearchOptions' })

const time = z.union([z.iso.date(), z.iso.datetime({ offset: true })])

const Octen = z
  .strictObject({
    count: count.optional(),
    end_time: time.optional(),
    exclude_domains: words.optional(),
    exclude_text: z.array(z.string()).optional(),
    format: z.enum(['markdown', 'text']).optional(),
    full_content: z.strictObject({ enable: z.boolean().optional(), max_tokens: count.optional() }).optional(),
    highlight: z.strictObject({ enable: z.boolean().optional(), max_tokens: count.optional() }).optional(),
    include_domains: words.optional(),
    include_images: z.boolean().optional(),
    include_text: z.array(z.string()).optional(),
    language: z.array(z.string()).optional(),
    safesearch: z.enum(['off', 'strict']).optional(),
    start_time: time.optional(),
    time_basis: z.enum(['auto', 'published', 'crawled']).optional(),
    time_range: z.enum(['day', 'week', 'month', 'year', 'd', 'w', 'm', 'y']).optional(),
    topic: z.enum(['general', 'news']).optional(),
  })
  .meta({ id: 'OctenSearchOptions' })

const SearXng = z
  .strictObject({
    categories: z.string().optional(),
    engines: z.string().optional(),
    language: z.string().optional(),
    pageno: z.int().min(1).optional(),
    safesearch: z.union([z.literal(0), z.literal(1), z.literal(2)]).optional(),
    time_range: z.enum(['day', 'month', 'year']).optional(),
  })
  .meta({ id: 'SearXngSearchOptions' })

export const providerOptions = {
  brave: Brave,
  exa: Exa,
  perplexity: Perplexity,
  context: Context,
  parallel: Parallel,
  valyu: Valyu,
  octen: Octen,
  you: You,
  tavily: Tavily,
  serpapi: SerpApi,
  searxng: SearXng,
} as const

export type ProviderSlug = keyof typeof providerOptions

export const providerSlugs = Object.keys(providerOptions) as readonly ProviderSlug[]
export const ProviderSlugs = z.enum(providerSlugs as [ProviderSlug, ...ProviderSlug[]])
