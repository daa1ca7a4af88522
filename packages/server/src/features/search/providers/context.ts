import { z } from 'zod'
import { atLeastDay, support } from './param-support.ts'
import type { Provider } from './provider.ts'

/** The provider rejects smaller numbers. */
const minResults = 10
const hourMilliseconds = 60 * 60 * 1000
const periods = { day: 'last_24_hours', week: 'last_week', month: 'last_month', year: 'last_year' } as const

const Answer = z.object({
  results: z.array(
    z.object({
      url: z.string(),
      title: z.string().nullish(),
      description: z.string().nullish(),
      markdown: z.object({ markdown: z.string().nullish() }).nullish(),
    }),
  ),
})

/** Context.dev, `POST /web/search`. */
export const context: Provider = {
  slug: 'context',
  defaultUrl: 'https://api.context.dev/v1',
  maxResultsCap: 100,
  freshnessControl: true,
  inlineContent: true,
  countOption: ['numResults'],
  params: support({
    country: 'native',
    recency: { support: 'native', notes: 'An hour is emulated by a day.' },
    include_domains: 'native',
    exclude_domains: 'native',
  }),
  examples: [{ queryFanout: true }, { markdownOptions: { enabled: true, useMainContentOnly: true } }],
  authorize: (key) => ({ headers: { authorization: `Bearer ${key}` } }),
  plan({ text, maxResults, params, options, content }, note) {
    const { markdownOptions, ...others } = options as { markdownOptions?: object }
    const age = content?.maxAgeHours
    const freshness = params.recency && periods[atLeastDay(params.recency, note)]
    return {
      method: 'POST',
      path: '/web/search',
      body: {
        ...others,
        query: text,
        numResults: Math.max(minResults, maxResults),
        ...(params.country && { country: params.country.toLowerCase() }),
        ...(freshness && { freshness }),
        ...(params.include_domains?.length && { includeDomains: params.include_domains }),
        ...(params.exclude_domains?.length && { excludeDomains: params.exclude_domains }),
        ...((content || markdownOptions) && {
          markdownOptions: {
            ...markdownOptions,
            ...(content && { enabled: true }),
            ...(age !== undefined && { maxAgeMs: age * hourMilliseconds }),
          },
        }),
      },
    }
  },
  read(answer) {
    const { results } = Answer.parse(answer)
    const raw = (answer as { results: unknown[] }).results
    return {
      hits: results.map(({ url, title, description: snippet, markdown }, index) => ({
        url,
        title,
        snippet,
        content: markdown?.markdown
          ? { text: markdown.markdown, format: 'markdown', completeness: 'full_page' }
          : undefined,
        raw: raw[index],
      })),
    }
  },
}
