import type { ProviderSlug } from '@berth/contract/search/provider-options.ts'
import { brave } from './brave.ts'
import { context } from './context.ts'
import { exa } from './exa.ts'
import { octen } from './octen.ts'
import { parallel } from './parallel.ts'
import { perplexity } from './perplexity.ts'
import type { Provider } from './provider.ts'
import { searxng } from './searxng.ts'
import { serpapi } from './serpapi.ts'
import { tavily } from './tavily.ts'
import { valyu } from './valyu.ts'
import { you } from './you.ts'

/** In the order of preference of `auto` for providers with the same support. */
export const knownProviders: readonly Provider[] = [
  brave,
  exa,
  tavily,
  serpapi,
  perplexity,
  parallel,
  you,
  valyu,
  context,
  octen,
  searxng,
]

/** A provider that the operator has configured. */
export interface ProviderAccess {
  readonly provider: Provider
  /** Without a trailing slash. */
  readonly url: string
  readonly key: string | undefined
}

export interface SearchConfig {
  readonly providers: readonly ProviderAccess[]
  /** The time limit of one attempt. */
  readonly attemptLimitMilliseconds: number
}

/** The environment variables of a provider: `BERTH_SEARCH_BRAVE_KEY` and `BERTH_SEARCH_BRAVE_URL`. */
export function settingName(slug: ProviderSlug, setting: 'KEY' | 'URL'): string {
  return `BERTH_SEARCH_${slug.toUpperCase()}_${setting}`
}

/** The variable that enables a provider. */
export function neededSetting({ slug, defaultUrl }: Provider): string {
  return settingName(slug, defaultUrl === undefined ? 'URL' : 'KEY')
}
