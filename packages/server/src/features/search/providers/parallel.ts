import { z } from 'zod'
import { sinceDate, support } from './param-support.ts'
import type { Note, PortableParams, Provider } from './provider.ts'

const maxDomains = 200
const maxQueryLength = 200

const Answer = z.object({
  results: z.array(
    z.object({
      url: z.string(),
      title: z.string().nullish(),
      publish_date: z.string().nullish(),
      excerpts: z.array(z.string()).nullish(),
    }),
  ),
})

interface Settings {
  readonly advanced_settings?: {
    readonly source_policy?: object
    readonly fetch_policy?: object
    readonly location?: string
  }
  readonly search_queries?: readonly string[]
}

/** Parallel, `POST /v1/search`. */
export const parallel: Provider = {
  slug: 'parallel',
  defaultUrl: 'https://api.parallel.ai',
  maxResultsCap: 40,
  freshnessControl: true,
  inlineContent: true,
  countOption: ['advanced_settings', 'max_results'],
  params: support({
    country: 'native',
    recency: { support: 'emulated', notes: 'As a first day.' },
    start_date: 'native',
    include_domains: 'native',
    exclude_domains: 'native',
  }),
  notes: 'Content is excerpts.',
  examples: [{ mode: 'basic' }],
  authorize: (key) => ({ headers: { 'x-api-key': key } }),
  plan({ text, maxResults, params, options, content, now }, note) {
    const { advanced_settings: settings = {}, search_queries: queries = [], ...others } = options as Settings
    if (params.recency) note('recency_emulated', 'recency', 'The period is a first day.')
    const maxAge = content?.maxAgeHours
    return {
      method: 'POST',
      path: '/v1/search',
      body: {
        objective: text,
        ...others,
        search_queries: [text.slice(0, maxQueryLength), ...queries],
        advanced_settings: {
          ...settings,
          max_results: maxResults,
          location: params.country?.toLowerCase() ?? settings.location,
          source_policy: {
            ...settings.source_policy,
            ...domainsOf(params, note),
            ...((params.recency || params.start_date) && {
              after_date: params.recency ? sinceDate(params.recency, now) : params.start_date,
            }),
          },
          ...(maxAge !== undefined && {
            // The shortest age that it accepts is ten minutes.
            fetch_policy: { ...settings.fetch_policy, max_age_seconds: Math.max(600, Math.round(maxAge * 3600)) },
          }),
        },
      },
    }
  },
  read(answer) {
    const { results } = Answer.parse(answer)
    const raw = (answer as { results: unknown[] }).results
    return {
      hits: results.map(({ url, title, publish_date: publishedDate, excerpts }, index) => ({
        url,
        title,
        snippet: excerpts?.[0],
        publishedDate,
        additionalSnippets: excerpts?.slice(1),
        content: excerpts?.length
          ? { text: excerpts.join('\n\n'), format: 'markdown' as const, completeness: 'excerpt' as const }
          : undefined,
        raw: raw[index],
      })),
    }
  },
}

function domainsOf({ include_domains = [], exclude_domains = [] }: PortableParams, note: Note) {
  const include = include_domains.slice(0, maxDomains)
  const exclude = exclude_domains.slice(0, maxDomains - include.length)
  const truncated = (param: 'include_domains' | 'exclude_domains') =>
    note('domains_truncated', param, `This provider takes ${maxDomains} domains at most, in both lists together.`)
  if (include.length < include_domains.length) truncated('include_domains')
  if (exclude.length < exclude_domains.length) truncated('exclude_domains')
  return {
    ...(include.length > 0 && { include_domains: include }),
    ...(exclude.length > 0 && { exclude_domains: exclude }),
  }
}
