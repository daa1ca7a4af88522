import { z } from 'zod'
import { firstDomains, sinceDate, support } from './param-support.ts'
import type { Provider } from './provider.ts'

const maxDomains = 100

const Answer = z.object({
  success: z.boolean().nullish(),
  error: z.string().nullish(),
  results: z
    .array(
      z.object({
        url: z.string(),
        title: z.string().nullish(),
        description: z.string().nullish(),
        snippet: z.string().nullish(),
        content: z.unknown().optional(),
        source: z.string().nullish(),
        publication_date: z.string().nullish(),
      }),
    )
    .nullish(),
  total_deduction_dollars: z.number().nullish(),
})

/** Valyu, `POST /v1/deepsearch`. */
export const valyu: Provider = {
  slug: 'valyu',
  defaultUrl: 'https://api.valyu.ai',
  maxResultsCap: 20,
  freshnessControl: false,
  inlineContent: true,
  countOption: ['max_num_results'],
  params: support({
    country: 'native',
    recency: { support: 'emulated', notes: 'As a first day.' },
    start_date: 'native',
    end_date: 'native',
    include_domains: 'native',
    exclude_domains: 'native',
  }),
  examples: [{ search_type: 'web', response_length: 'short' }],
  authorize: (key) => ({ headers: { 'x-api-key': key } }),
  plan({ text, maxResults, params, options, now }, note) {
    if (params.recency) note('recency_emulated', 'recency', 'The period is a first day.')
    return {
      method: 'POST',
      path: '/v1/deepsearch',
      body: {
        ...options,
        query: text,
        max_num_results: maxResults,
        country_code: params.country,
        start_date: params.recency ? sinceDate(params.recency, now) : params.start_date,
        end_date: params.end_date,
        included_sources: firstDomains(params.include_domains, maxDomains, 'include_domains', note),
        excluded_sources: firstDomains(params.exclude_domains, maxDomains, 'exclude_domains', note),
      },
    }
  },
  read(answer, { options }) {
    const { success, error, results, total_deduction_dollars: cost } = Answer.parse(answer)
    // Without results, it reports a failure and an empty list.
    if (success === false && !results) throw new Error(error ?? 'the search failed')
    const raw = (answer as { results?: unknown[] }).results ?? []
    // By default it returns excerpts of 25,000 characters.
    const completeness = options.response_length === 'max' ? ('full_page' as const) : ('unknown' as const)
    return {
      cost,
      hits: (results ?? []).map(({ url, title, description, snippet, content, source, publication_date }, index) => ({
        url,
        title,
        snippet: snippet ?? description ?? (typeof content === 'string' ? content.slice(0, 300) : undefined),
        source,
        publishedDate: publication_date,
        content:
          typeof content === 'string' && content ? { text: content, format: 'markdown', completeness } : undefined,
        raw: raw[index],
      })),
    }
  },
}
