import { z } from 'zod'
import { queryOf, support, withSites } from './param-support.ts'
import type { Note, Provider, Recency } from './provider.ts'

const safeLevels = { off: 0, moderate: 1, strict: 2 } as const
const ranges = { day: 'day', month: 'month', year: 'year' } as const

const Answer = z.object({
  results: z.array(
    z.object({
      url: z.string(),
      title: z.string().nullish(),
      content: z.string().nullish(),
      engine: z.string().nullish(),
      publishedDate: z.string().nullish(),
    }),
  ),
  answers: z.array(z.union([z.string(), z.object({ answer: z.string() }).transform(({ answer }) => answer)])).nullish(),
})

/** SearXNG, `GET /search?format=json`. Its operator must enable the format `json` in settings.yml. */
export const searxng: Provider = {
  slug: 'searxng',
  defaultUrl: undefined,
  // The engines determine the size of a page.
  maxResultsCap: 50,
  freshnessControl: false,
  inlineContent: false,
  countOption: [],
  params: support({
    language: 'native',
    safe_search: 'native',
    recency: { support: 'native', notes: 'An hour is emulated by a day, and a week by a month.' },
    include_domains: 'emulated',
    exclude_domains: 'emulated',
  }),
  notes: 'A server of the operator’s own. How many results a page has depends on its engines.',
  examples: [{ categories: 'general', engines: 'wikipedia' }],
  authorize: (key) => ({ headers: { authorization: `Bearer ${key}` } }),
  plan({ text, params, options }, note) {
    return {
      method: 'GET',
      path: '/search',
      query: queryOf({
        ...options,
        format: 'json',
        q: withSites(text, params, note),
        language: params.language ?? options.language,
        safesearch: params.safe_search ? safeLevels[params.safe_search] : options.safesearch,
        time_range: params.recency ? rangeOf(params.recency, note) : options.time_range,
      }),
    }
  },
  read(answer) {
    const { results, answers } = Answer.parse(answer)
    const raw = (answer as { results: unknown[] }).results
    return {
      answer: answers?.[0],
      hits: results.map(({ url, title, content: snippet, engine: source, publishedDate }, index) => ({
        url,
        title,
        snippet,
        source,
        publishedDate,
        raw: raw[index],
      })),
    }
  },
}

function rangeOf(recency: Recency, note: Note): string {
  const range = recency === 'hour' ? 'day' : recency === 'week' ? 'month' : recency
  if (range !== recency) note('recency_emulated', 'recency', `The period of this provider that holds it is a ${range}.`)
  return ranges[range]
}
