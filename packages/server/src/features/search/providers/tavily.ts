import { z } from 'zod'
import { atLeastDay, baseLanguage, firstDomains, support } from './param-support.ts'
import type { Provider, ProviderContent } from './provider.ts'

const maxIncluded = 300
const maxExcluded = 150
const maxUrls = 20

const Answer = z.object({
  answer: z.string().nullish(),
  results: z.array(
    z.object({
      url: z.string(),
      title: z.string().nullish(),
      content: z.string().nullish(),
      raw_content: z.string().nullish(),
      published_date: z.string().nullish(),
    }),
  ),
})
const Extracted = z.object({ results: z.array(z.object({ url: z.string(), raw_content: z.string().nullish() })) })
const countryNames = new Intl.DisplayNames(['en'], { type: 'region' })

/** Tavily, `POST /search` and `POST /extract`. */
export const tavily: Provider = {
  slug: 'tavily',
  defaultUrl: 'https://api.tavily.com',
  maxResultsCap: 20,
  freshnessControl: false,
  inlineContent: true,
  countOption: ['max_results'],
  params: support({
    country: 'native',
    language: 'native',
    recency: { support: 'native', notes: 'An hour is emulated by a day.' },
    start_date: 'native',
    end_date: 'native',
    include_domains: 'native',
    exclude_domains: 'native',
  }),
  examples: [{ search_depth: 'advanced', include_answer: true }],
  authorize: (key) => ({ headers: { authorization: `Bearer ${key}` } }),
  plan({ text, maxResults, params, options, content }, note) {
    return {
      method: 'POST',
      path: '/search',
      body: {
        ...options,
        query: text,
        max_results: maxResults,
        country: params.country && countryNames.of(params.country)?.toLowerCase(),
        language: params.language ? baseLanguage(params.language) : options.language,
        time_range: params.recency && atLeastDay(params.recency, note),
        start_date: params.start_date,
        end_date: params.end_date,
        include_domains: firstDomains(params.include_domains, maxIncluded, 'include_domains', note),
        exclude_domains: firstDomains(params.exclude_domains, maxExcluded, 'exclude_domains', note),
        include_raw_content: content ? content.format : options.include_raw_content,
      },
    }
  },
  read(answer, { content, options }) {
    const { answer: written, results } = Answer.parse(answer)
    const raw = (answer as { results: unknown[] }).results
    const asked = content?.format ?? options.include_raw_content
    const format = asked === 'text' ? 'text' : 'markdown'
    return {
      answer: written,
      hits: results.map(
        ({ url, title, content: snippet, raw_content: text, published_date: publishedDate }, index) => ({
          url,
          title,
          snippet,
          publishedDate,
          content: text ? { text, format, completeness: 'full_page' } : undefined,
          raw: raw[index],
        }),
      ),
    }
  },
  postHoc: {
    maxUrls,
    plan: (urls, { format }) => ({ method: 'POST', path: '/extract', body: { urls, format } }),
    read(answer, { format }) {
      const found = Extracted.parse(answer).results.flatMap(
        ({ url, raw_content: text }): [string, ProviderContent][] =>
          text ? [[url, { text, format, completeness: 'full_page' }]] : [],
      )
      return new Map(found)
    },
  },
}
