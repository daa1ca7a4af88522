import { z } from 'zod'
import { type ProviderSlug, providerOptions } from './provider-options.ts'

export const maxResults = 100
export const maxContentCharacters = 1_000_000
const maxQueryLength = 2_048
const maxDomains = 1_000
const maxTimeoutMilliseconds = 600_000

const TimeoutMilliseconds = z.int().min(1).max(maxTimeoutMilliseconds)

export const ContentOptions = z
  .object({
    source: z
      .enum(['auto', 'provider', 'browser'])
      .default('auto')
      .meta({ description: 'auto: fetched by a browser, or the provider’s content if that fails.' }),
    format: z.enum(['markdown', 'text']).default('markdown'),
    max_age_hours: z
      .number()
      .min(0)
      .max(24 * 7)
      .optional()
      .meta({ description: 'Hours for which cached content may be used. 0 always fetches. Default: 24.' }),
    max_chars: z
      .int()
      .min(1)
      .max(maxContentCharacters)
      .optional()
      .meta({ description: 'Unicode characters for each result, after extraction. Default: 100000.' }),
    timeout_ms: TimeoutMilliseconds.optional().meta({ description: 'Time limit for each result. Default: 20000.' }),
    browser: z
      .object({
        browser_id: z
          .string()
          .min(1)
          .max(255)
          .optional()
          .meta({ description: 'A session whose cookies and proxy are used. Absent: a temporary one.' }),
        mode: z
          .enum(['curl', 'render'])
          .optional()
          .meta({ description: 'Absent: curl, or rendering if that returns no text.' }),
      })
      .optional(),
  })
  .superRefine(({ source, browser }, { addIssue }) => {
    const refuse = (message: string) => addIssue({ code: 'custom', path: ['browser'], message })
    if (browser && source === 'provider') refuse('has no place with the source provider')
    if (browser?.browser_id !== undefined && source !== 'browser') refuse('browser_id needs the source browser')
  })
  .meta({ id: 'SearchContentOptions' })
export type ContentOptions = z.output<typeof ContentOptions>

function targetOf(slug: ProviderSlug) {
  // SerpApi requires its engine, so its options are optional only as a whole.
  return z.strictObject({ provider: z.literal(slug), options: providerOptions[slug].optional() })
}

export const ProviderTarget = z
  .discriminatedUnion('provider', [
    targetOf('brave'),
    targetOf('exa'),
    targetOf('perplexity'),
    targetOf('context'),
    targetOf('parallel'),
    targetOf('valyu'),
    targetOf('octen'),
    targetOf('you'),
    targetOf('tavily'),
    targetOf('serpapi'),
    targetOf('searxng'),
  ])
  .meta({ id: 'SearchProviderTarget' })
export interface ProviderTarget {
  readonly provider: ProviderSlug
  readonly options?: Readonly<Record<string, unknown>> | undefined
}

const ProviderTargets = z
  .array(ProviderTarget)
  .max(Object.keys(providerOptions).length)
  .refine((targets) => new Set(targets.map(({ provider }) => provider)).size === targets.length, {
    error: 'must contain each provider once',
  })

const FallbackOn = z
  .array(z.enum(['error', 'timeout', 'empty']))
  .default(['error', 'timeout', 'empty'])
  .meta({ description: 'The failures after which the next provider is tried. An empty list disables fallback.' })

export const SearchStrategy = z
  .discriminatedUnion('type', [
    z.strictObject({
      type: z.literal('auto'),
      fallback_on: FallbackOn,
      provider_options: ProviderTargets.optional().meta({ description: 'Options for the provider that is chosen.' }),
    }),
    z.strictObject({ type: z.literal('pinned'), provider: ProviderTarget }),
    z.strictObject({ type: z.literal('fallback'), providers: ProviderTargets.min(1), fallback_on: FallbackOn }),
  ])
  .meta({ id: 'SearchStrategy' })
export type SearchStrategy = z.output<typeof SearchStrategy>

/** A host name, without scheme, port and path. */
const Domain = z
  .string()
  .transform((text) => text.trim().toLowerCase().replace(/\.$/, ''))
  .refine((text) => text.length <= 253 && /^[\p{L}\p{N}_-]+(\.[\p{L}\p{N}_-]+)*$/u.test(text), {
    error: 'must be a host name such as example.com',
  })
  .meta({ override: { type: 'string' } })
const Domains = z.array(Domain).max(maxDomains)

const languageTag = /^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/

export const SearchRequest = z
  .object({
    query: z
      .string()
      .max(maxQueryLength)
      .refine((text) => text.trim() !== '', { error: 'must not be empty' }),
    strategy: SearchStrategy.default({ type: 'auto', fallback_on: ['error', 'timeout', 'empty'] }),
    max_results: z.int().min(1).max(maxResults).optional().meta({ description: 'Default: 10.' }),
    content: z
      .union([z.literal(true), ContentOptions])
      .optional()
      .meta({
        description: 'true: all defaults. Absent: no browser is used, and content of the provider is returned.',
      }),
    country: z
      .string()
      .transform((text) => text.toUpperCase())
      .refine((text) => /^[A-Z]{2}$/.test(text), { error: 'must be an ISO 3166-1 country code such as US' })
      .optional()
      .meta({ override: { type: 'string' } }),
    language: z
      .string()
      .max(64)
      .regex(languageTag, { error: 'must be a BCP 47 language tag such as en or pt-BR' })
      .optional(),
    safe_search: z.enum(['off', 'moderate', 'strict']).optional(),
    recency: z.enum(['hour', 'day', 'week', 'month', 'year']).optional(),
    start_date: z.iso.date({ error: 'must be a date such as 2026-01-31' }).optional(),
    end_date: z.iso.date({ error: 'must be a date such as 2026-01-31' }).optional(),
    include_domains: Domains.optional(),
    exclude_domains: Domains.optional(),
    include_raw: z.boolean().default(false),
    strict_params: z.boolean().default(false).meta({
      description: 'Reject parameters that a provider does not support exactly, instead of returning a warning.',
    }),
    timeout_ms: TimeoutMilliseconds.optional().meta({
      description: 'Time limit for the whole request. Default: 55000.',
    }),
  })
  .refine(({ start_date, end_date }) => !start_date || !end_date || start_date <= end_date, {
    path: ['end_date'],
    error: 'must not be before start_date',
  })
  .meta({ id: 'SearchRequest' })
export type SearchRequest = z.output<typeof SearchRequest>

export const ContentsRequest = z
  .object({
    content: ContentOptions.optional(),
    limit: z.int().min(1).max(maxResults).optional().meta({ description: 'Number of results, from rank 1.' }),
    result_ids: z.array(z.string().min(1).max(64)).min(1).max(maxResults).optional(),
    timeout_ms: TimeoutMilliseconds.optional(),
  })
  .refine(({ limit, result_ids }) => limit === undefined || result_ids === undefined, {
    path: ['limit'],
    error: 'cannot be combined with result_ids',
  })
  .meta({ id: 'SearchContentsRequest' })
export type ContentsRequest = z.output<typeof ContentsRequest>
