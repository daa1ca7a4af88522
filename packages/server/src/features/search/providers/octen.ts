import { z } from 'zod'
import { atLeastDay, baseLanguage, firstDomains, support } from './param-support.ts'
import type { Provider } from './provider.ts'

const maxDomains = 1200
/** The maximum that it returns of a page. */
const maxTokens = 100_000

const Answer = z.object({
  code: z.number().nullish(),
  msg: z.string().nullish(),
  data: z
    .object({
      results: z.array(
        z.object({
          url: z.string(),
          title: z.string().nullish(),
          highlight: z.string().nullish(),
          full_content: z.string().nullish(),
          authors: z.string().nullish(),
          time_published: z.string().nullish(),
        }),
      ),
    })
    .nullish(),
})

/** Octen, `POST /search`. */
export const octen: Provider = {
  slug: 'octen',
  defaultUrl: 'https://api.octen.ai',
  maxResultsCap: 100,
  freshnessControl: false,
  inlineContent: true,
  countOption: ['count'],
  params: support({
    language: 'native',
    safe_search: { support: 'native', notes: 'moderate is emulated by strict.' },
    recency: { support: 'native', notes: 'An hour is emulated by a day.' },
    start_date: 'native',
    end_date: 'native',
    include_domains: 'native',
    exclude_domains: 'native',
  }),
  examples: [{ topic: 'news', highlight: { max_tokens: 300 } }],
  authorize: (key) => ({ headers: { 'x-api-key': key } }),
  plan({ text, maxResults, params, options, content }, note) {
    if (params.safe_search === 'moderate') {
      note('filter_emulated', 'safe_search', 'The filter of this provider is off or strict; it is strict.')
    }
    const safesearch = params.safe_search === 'moderate' ? 'strict' : params.safe_search
    return {
      method: 'POST',
      path: '/search',
      body: {
        ...options,
        query: text,
        count: maxResults,
        language: params.language ? [baseLanguage(params.language)] : options.language,
        safesearch: safesearch ?? options.safesearch,
        time_range: params.recency ? atLeastDay(params.recency, note) : options.time_range,
        start_time: params.start_date ? `${params.start_date}T00:00:00Z` : options.start_time,
        end_time: params.end_date ? `${params.end_date}T23:59:59Z` : options.end_time,
        include_domains:
          firstDomains(params.include_domains, maxDomains, 'include_domains', note) ?? options.include_domains,
        exclude_domains:
          firstDomains(params.exclude_domains, maxDomains, 'exclude_domains', note) ?? options.exclude_domains,
        ...(content && { format: content.format, full_content: { enable: true, max_tokens: maxTokens } }),
      },
    }
  },
  read(answer, { content, options }) {
    const { code, msg, data } = Answer.parse(answer)
    if (code || !data) throw new Error(msg ?? 'the search failed')
    const raw = (answer as { data: { results: unknown[] } }).data.results
    const format = (content?.format ?? options.format) === 'markdown' ? ('markdown' as const) : ('text' as const)
    return {
      hits: data.results.map(
        ({ url, title, highlight: snippet, full_content: text, authors, time_published }, index) => ({
          url,
          title,
          snippet,
          source: authors,
          publishedDate: time_published,
          // The end may be truncated, which it does not report.
          content: text ? { text, format, completeness: 'unknown' as const } : undefined,
          raw: raw[index],
        }),
      ),
    }
  },
}
