import type { ProviderSlug } from '@berth/contract/search/provider-options.ts'
import type { ParamSupport, PortableParam } from '@berth/contract/search/search.ts'

export type Recency = 'hour' | 'day' | 'week' | 'month' | 'year'

/** The portable parameters of a request, without those that the provider does not support. */
export interface PortableParams {
  readonly country?: string | undefined
  readonly language?: string | undefined
  readonly safe_search?: 'off' | 'moderate' | 'strict' | undefined
  readonly recency?: Recency | undefined
  readonly start_date?: string | undefined
  readonly end_date?: string | undefined
  readonly include_domains?: readonly string[] | undefined
  readonly exclude_domains?: readonly string[] | undefined
}

export type WarningCode =
  | 'param_unsupported'
  | 'preference_unsupported'
  | 'max_results_clamped'
  | 'domains_truncated'
  | 'recency_emulated'
  | 'filter_emulated'
  | 'date_filter_overridden'

/** Adds a warning that a parameter is not applied exactly. */
export type Note = (code: WarningCode, param: PortableParam | 'max_results', message: string) => void

export interface ProviderQuery {
  readonly text: string
  readonly maxResults: number
  readonly params: PortableParams
  /** Native options of this provider, already validated against its schema. */
  readonly options: Readonly<Record<string, unknown>>
  /** The requested content of each page, if the provider can return it. */
  readonly content: { readonly format: 'markdown' | 'text'; readonly maxAgeHours: number | undefined } | undefined
  readonly now: Date
}

export interface ProviderRequest {
  readonly method: 'GET' | 'POST'
  /** Relative to the provider's address. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

export interface ProviderContent {
  readonly text: string
  readonly format: 'markdown' | 'text'
  readonly completeness: 'full_page' | 'excerpt' | 'unknown'
}

export interface ProviderHit {
  readonly url: string
  readonly title?: string | null | undefined
  readonly snippet?: string | null | undefined
  readonly source?: string | null | undefined
  readonly publishedDate?: string | null | undefined
  readonly additionalSnippets?: readonly string[] | null | undefined
  readonly content?: ProviderContent | undefined
  /** Exactly as the provider sent it. */
  readonly raw: unknown
}

export interface ProviderAnswer {
  readonly hits: readonly ProviderHit[]
  readonly answer?: string | null | undefined
  readonly cost?: number | null | undefined
}

/** Requests content from the provider for pages of an earlier search. */
export interface PostHocContents {
  readonly maxUrls: number
  plan(urls: readonly string[], query: ContentsQuery): ProviderRequest
  /** By URL. Missing pages are unavailable. */
  read(answer: unknown, query: ContentsQuery): ReadonlyMap<string, ProviderContent>
}

export interface ContentsQuery {
  readonly format: 'markdown' | 'text'
  readonly maxAgeHours: number | undefined
}

/** One search provider: how to build its requests and read its responses. It sends nothing itself. */
export interface Provider {
  readonly slug: ProviderSlug
  readonly defaultUrl: string | undefined
  readonly maxResultsCap: number
  readonly freshnessControl: boolean
  readonly inlineContent: boolean
  readonly params: Readonly<Record<PortableParam, ParamSupport>>
  /** The path of the native option that limits the number of results, outermost name first. */
  readonly countOption: readonly string[]
  readonly notes?: string
  readonly examples?: readonly Readonly<Record<string, unknown>>[]
  authorize(key: string): Pick<ProviderRequest, 'headers' | 'query'>
  plan(query: ProviderQuery, note: Note): ProviderRequest
  /** Throws if the response does not have the provider's format. */
  read(answer: unknown, query: ProviderQuery): ProviderAnswer
  readonly postHoc?: PostHocContents
}
