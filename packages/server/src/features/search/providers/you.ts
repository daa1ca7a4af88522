import { z } from 'zod'
import { atLeastDay, firstDomains, support } from './param-support.ts'
import type { Note, PortableParams, Provider } from './provider.ts'

const maxDomains = 500

const Hit = z.object({
  url: z.string(),
  title: z.string().nullish(),
  description: z.string().nullish(),
  snippets: z.array(z.string()).nullish(),
  page_age: z.string().nullish(),
  contents: z.object({ markdown: z.string().nullish(), html: z.string().nullish() }).nullish(),
})
const Answer = z.object({ results: z.object({ web: z.array(Hit).nullish(), news: z.array(Hit).nullish() }) })

/** You.com Web Search API, `POST /v1/search`. */
export const you: Provider = {
  slug: 'you',
  defaultUrl: 'https://ydc-index.io',
  maxResultsCap: 100,
  freshnessControl: false,
  inlineContent: true,
  countOption: ['count'],
  params: support({
    country: 'native',
    language: 'native',
    safe_search: 'native',
    recency: { support: 'native', notes: 'An hour is emulated by a day.' },
    start_date: 'native',
    end_date: 'native',
    include_domains: 'native',
    exclude_domains: 'native',
  }),
  examples: [{ extraction: { extraction_mode: 'highlights' } }],
  authorize: (key) => ({ headers: { 'x-api-key': key } }),
  plan({ text, maxResults, params, options, content }, note) {
    return {
      method: 'POST',
      path: '/v1/search',
      body: {
        ...options,
        query: text,
        count: maxResults,
        country: params.country,
        language: params.language?.toUpperCase() ?? options.language,
        safesearch: params.safe_search,
        freshness: freshnessOf(params, note),
        include_domains: firstDomains(params.include_domains, maxDomains, 'include_domains', note),
        exclude_domains: firstDomains(params.exclude_domains, maxDomains, 'exclude_domains', note),
        extraction: content
          ? { extraction_mode: 'full_page', full_page: { extraction_formats: ['markdown'] } }
          : options.extraction,
      },
    }
  },
  read(answer) {
    const { web, news } = Answer.parse(answer).results
    const raw = (answer as { results: { web?: unknown[]; news?: unknown[] } }).results
    const rawHits = [...(raw.web ?? []), ...(raw.news ?? [])]
    return {
      hits: [...(web ?? []), ...(news ?? [])].map((hit, index) => ({
        url: hit.url,
        title: hit.title,
        snippet: hit.snippets?.[0] ?? hit.description,
        publishedDate: hit.page_age,
        additionalSnippets: hit.snippets?.slice(1),
        content: hit.contents?.markdown
          ? { text: hit.contents.markdown, format: 'markdown' as const, completeness: 'full_page' as const }
          : undefined,
        raw: rawHits[index],
      })),
    }
  },
}

function freshnessOf({ recency, start_date, end_date }: PortableParams, note: Note): string | undefined {
  if (recency) return atLeastDay(recency, note)
  if (!start_date && !end_date) return undefined
  return `${start_date ?? '1970-01-01'}to${end_date ?? '2100-01-01'}`
}
