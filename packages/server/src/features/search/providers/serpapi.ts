import { z } from 'zod'
import { baseLanguage, queryOf, support, usDate, withSites } from './param-support.ts'
import type { PortableParams, Provider } from './provider.ts'

const Answer = z.object({
  error: z.string().nullish(),
  answer_box: z.object({ answer: z.unknown(), snippet: z.unknown() }).partial().nullish(),
  organic_results: z
    .array(
      z.object({
        link: z.string(),
        title: z.string().nullish(),
        snippet: z.string().nullish(),
        source: z.string().nullish(),
        date: z.string().nullish(),
      }),
    )
    .nullish(),
})

/** SerpApi, `GET /search.json` with the engine `google`. */
export const serpapi: Provider = {
  slug: 'serpapi',
  defaultUrl: 'https://serpapi.com',
  maxResultsCap: 100,
  freshnessControl: false,
  inlineContent: false,
  countOption: ['num'],
  params: support({
    country: 'native',
    language: 'native',
    safe_search: { support: 'native', notes: 'Moderate is emulated by active.' },
    recency: 'native',
    start_date: 'native',
    end_date: 'native',
    include_domains: 'emulated',
    exclude_domains: 'emulated',
  }),
  examples: [{ engine: 'google', device: 'mobile' }],
  authorize: (key) => ({ query: { api_key: key } }),
  plan({ text, maxResults, params, options }, note) {
    const { safe_search: safe } = params
    if (safe === 'moderate')
      note('filter_emulated', 'safe_search', 'The filter of this provider is on or off; it is on.')
    return {
      method: 'GET',
      path: '/search.json',
      query: queryOf({
        ...options,
        engine: 'google',
        q: withSites(text, params, note),
        num: maxResults,
        gl: params.country?.toLowerCase() ?? options.gl,
        hl: params.language ? baseLanguage(params.language) : options.hl,
        safe: safe ? (safe === 'off' ? 'off' : 'active') : options.safe,
        tbs: periodOf(params) ?? options.tbs,
      }),
    }
  },
  read(answer) {
    const { error, answer_box: box, organic_results: results } = Answer.parse(answer)
    // This error means an empty list of results.
    if (error && !results && !/hasn't returned any results/i.test(error)) throw new Error(error)
    const raw = (answer as { organic_results?: unknown[] }).organic_results ?? []
    const written = box?.answer ?? box?.snippet
    return {
      answer: typeof written === 'string' ? written : undefined,
      hits: (results ?? []).map(({ link: url, title, snippet, source, date: publishedDate }, index) => ({
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

function periodOf({ recency, start_date, end_date }: PortableParams): string | undefined {
  if (recency) return `qdr:${recency[0]}`
  if (!start_date && !end_date) return undefined
  const ends = [start_date && `cd_min:${usDate(start_date)}`, end_date && `cd_max:${usDate(end_date)}`]
  return ['cdr:1', ...ends.filter(Boolean)].join(',')
}
