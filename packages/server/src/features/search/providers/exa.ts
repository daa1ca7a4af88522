import { z } from 'zod'
import { firstDomains, sinceDate, support } from './param-support.ts'
import type { ContentsQuery, Provider, ProviderContent } from './provider.ts'

const maxDomains = 1_200
const maxUrls = 100

const Answer = z.object({
  results: z.array(
    z.object({
      url: z.string(),
      title: z.string().nullish(),
      publishedDate: z.string().nullish(),
      author: z.string().nullish(),
      text: z.string().nullish(),
      highlights: z.array(z.string()).nullish(),
      summary: z.string().nullish(),
    }),
  ),
  costDollars: z.object({ total: z.number().nullish() }).nullish(),
})
const Contents = z.object({ results: z.array(z.object({ url: z.string(), text: z.string().nullish() })) })

/** Exa, `POST /search` and `POST /contents`. */
export const exa: Provider = {
  slug: 'exa',
  defaultUrl: 'https://api.exa.ai',
  maxResultsCap: 100,
  freshnessControl: true,
  inlineContent: true,
  countOption: ['numResults'],
  params: support({
    country: 'native',
    safe_search: { support: 'emulated', notes: 'Moderation is on or off.' },
    recency: { support: 'emulated', notes: 'As a first day of publication.' },
    start_date: 'native',
    end_date: 'native',
    include_domains: 'native',
    exclude_domains: 'native',
  }),
  examples: [{ type: 'fast', contents: { highlights: true } }],
  authorize: (key) => ({ headers: { 'x-api-key': key } }),
  plan({ text, maxResults, params, options, content, now }, note) {
    const { contents, maxAgeHours, ...others } = options as { contents?: object; maxAgeHours?: number }
    if (params.safe_search === 'moderate') {
      note('filter_emulated', 'safe_search', 'Moderation of this provider is on or off; it is on.')
    }
    if (params.recency) note('recency_emulated', 'recency', 'The period is a first day of publication.')
    const start = params.recency ? sinceDate(params.recency, now) : params.start_date
    const age = content?.maxAgeHours ?? maxAgeHours
    return {
      method: 'POST',
      path: '/search',
      body: {
        ...others,
        query: text,
        numResults: maxResults,
        userLocation: params.country,
        moderation: params.safe_search && params.safe_search !== 'off',
        startPublishedDate: start && `${start}T00:00:00.000Z`,
        endPublishedDate: params.end_date && `${params.end_date}T23:59:59.999Z`,
        includeDomains: firstDomains(params.include_domains, maxDomains, 'include_domains', note),
        excludeDomains: firstDomains(params.exclude_domains, maxDomains, 'exclude_domains', note),
        contents: {
          highlights: true,
          ...contents,
          ...(content && { text: true }),
          ...(age !== undefined && { maxAgeHours: age }),
        },
      },
    }
  },
  read(answer) {
    const { results, costDollars } = Answer.parse(answer)
    const raw = (answer as { results: unknown[] }).results
    return {
      cost: costDollars?.total,
      hits: results.map(({ url, title, publishedDate, text, highlights, summary }, index) => ({
        url,
        title,
        snippet: highlights?.[0] ?? summary ?? text?.slice(0, 300),
        publishedDate,
        additionalSnippets: highlights?.slice(1),
        content: text ? { text, format: 'text' as const, completeness: 'full_page' as const } : undefined,
        raw: raw[index],
      })),
    }
  },
  postHoc: {
    maxUrls,
    plan: (urls, { maxAgeHours }: ContentsQuery) => ({
      method: 'POST',
      path: '/contents',
      body: { urls, text: true, ...(maxAgeHours !== undefined && { maxAgeHours }) },
    }),
    read(answer) {
      const found = Contents.parse(answer).results.flatMap(({ url, text }): [string, ProviderContent][] =>
        text ? [[url, { text, format: 'text', completeness: 'full_page' }]] : [],
      )
      return new Map(found)
    },
  },
}
