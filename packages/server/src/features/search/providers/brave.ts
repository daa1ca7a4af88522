import { z } from 'zod'
import { atLeastDay, queryOf, support, withSites } from './param-support.ts'
import type { Note, PortableParams, Provider } from './provider.ts'

const maxOffset = 9
const freshness = { day: 'pd', week: 'pw', month: 'pm', year: 'py' } as const

const Answer = z.object({
  web: z
    .object({
      results: z.array(
        z.object({
          url: z.string(),
          title: z.string().nullish(),
          description: z.string().nullish(),
          page_age: z.string().nullish(),
          age: z.string().nullish(),
          profile: z.object({ name: z.string().nullish() }).nullish(),
          extra_snippets: z.array(z.string()).nullish(),
        }),
      ),
    })
    .nullish(),
})

/** Brave Search API, `GET /res/v1/web/search`. */
export const brave: Provider = {
  slug: 'brave',
  defaultUrl: 'https://api.search.brave.com',
  maxResultsCap: 20,
  freshnessControl: false,
  inlineContent: false,
  countOption: ['count'],
  params: support({
    country: 'native',
    language: 'native',
    safe_search: 'native',
    recency: { support: 'native', notes: 'An hour is emulated by a day.' },
    start_date: 'native',
    end_date: 'native',
    include_domains: 'emulated',
    exclude_domains: 'emulated',
  }),
  examples: [{ extra_snippets: true }],
  authorize: (key) => ({ headers: { 'x-subscription-token': key } }),
  plan({ text, maxResults, params, options }, note) {
    return {
      method: 'GET',
      path: '/res/v1/web/search',
      query: queryOf({
        ...options,
        offset: options.offset === undefined ? undefined : Math.min(Number(options.offset), maxOffset),
        q: withSites(text, params, note),
        count: maxResults,
        country: params.country,
        search_lang: searchLanguage(params.language) ?? options.search_lang,
        safesearch: params.safe_search,
        freshness: freshnessOf(params, note),
      }),
    }
  },
  read(answer) {
    const { web } = Answer.parse(answer)
    const raw = (answer as { web?: { results?: unknown[] } }).web?.results ?? []
    return {
      hits: (web?.results ?? []).map((result, index) => ({
        url: result.url,
        title: result.title,
        snippet: result.description,
        source: result.profile?.name,
        publishedDate: result.page_age ?? result.age,
        additionalSnippets: result.extra_snippets,
        raw: raw[index],
      })),
    }
  },
}

/** Brave supports regional variants of only two languages. */
function searchLanguage(tag: string | undefined): string | undefined {
  if (tag === undefined) return undefined
  const [language = '', ...rest] = tag.toLowerCase().split('-')
  if (language === 'zh') return rest.some((part) => ['hant', 'tw', 'hk', 'mo'].includes(part)) ? 'zh-hant' : 'zh-hans'
  if (language === 'pt') return rest.includes('br') ? 'pt-br' : 'pt-pt'
  if (language === 'en') return rest.includes('gb') ? 'en-gb' : 'en'
  return language === 'ja' ? 'jp' : language
}

function freshnessOf({ recency, start_date, end_date }: PortableParams, note: Note): string | undefined {
  if (recency) return freshness[atLeastDay(recency, note)]
  if (!start_date && !end_date) return undefined
  return `${start_date ?? '1970-01-01'}to${end_date ?? '2100-01-01'}`
}
