import { z } from 'zod'
import { baseLanguage, firstDomains, support, usDate } from './param-support.ts'
import type { PortableParams, Provider } from './provider.ts'

const maxDomains = 20

const Answer = z.object({
  results: z.array(
    z.object({
      url: z.string(),
      title: z.string().nullish(),
      snippet: z.string().nullish(),
      date: z.string().nullish(),
    }),
  ),
})

/** Perplexity Search API, `POST /search`. */
export const perplexity: Provider = {
  slug: 'perplexity',
  defaultUrl: 'https://api.perplexity.ai',
  maxResultsCap: 20,
  freshnessControl: false,
  inlineContent: false,
  countOption: ['max_results'],
  params: support({
    country: 'native',
    language: 'native',
    recency: 'native',
    start_date: 'native',
    end_date: 'native',
    include_domains: 'native',
    exclude_domains: { support: 'native', notes: 'Beside include_domains the results are filtered instead.' },
  }),
  examples: [{ max_tokens_per_page: 1024 }],
  authorize: (key) => ({ headers: { authorization: `Bearer ${key}` } }),
  plan({ text, maxResults, params, options }, note) {
    const included = firstDomains(params.include_domains, maxDomains, 'include_domains', note)
    const excluded = included ? undefined : firstDomains(params.exclude_domains, maxDomains, 'exclude_domains', note)
    if (included && params.exclude_domains?.length) {
      note('filter_emulated', 'exclude_domains', 'This provider takes one list of domains; the results are filtered.')
    }
    return {
      method: 'POST',
      path: '/search',
      body: {
        ...options,
        query: options.query ? [text, ...(options.query as string[])] : text,
        max_results: maxResults,
        country: params.country,
        search_language_filter: params.language ? [baseLanguage(params.language)] : options.search_language_filter,
        search_recency_filter: params.recency,
        ...periodOf(params),
        search_domain_filter: included ?? excluded?.map((domain) => `-${domain}`),
      },
    }
  },
  read(answer) {
    const { results } = Answer.parse(answer)
    const raw = (answer as { results: unknown[] }).results
    return {
      hits: results.map(({ url, title, snippet, date: publishedDate }, index) => ({
        url,
        title,
        snippet,
        publishedDate,
        raw: raw[index],
      })),
    }
  },
}

function periodOf({ start_date, end_date }: PortableParams) {
  return {
    search_after_date_filter: start_date && usDate(start_date),
    search_before_date_filter: end_date && usDate(end_date),
  }
}
