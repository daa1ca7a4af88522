import type { ResultContent } from '@berth/contract/search/search.ts'
import type { ContentOptions } from '@berth/contract/search/search-request.ts'
import { extractorVersion } from '../extraction/extracted.ts'
import type { ProviderContent } from '../providers/provider.ts'
import { defaultMaxCharacters, truncate } from './content-request.ts'
import type { PageFailure } from './fetch-page-text.ts'
import type { PageContent } from './page-contents.ts'

type CacheStatus = NonNullable<ResultContent['cache_status']>

export function contentOfPage(page: PageContent, options: ContentOptions, cacheStatus: CacheStatus): ResultContent {
  const { text, isTruncated } = truncate(page[options.format], options.max_chars ?? defaultMaxCharacters)
  return {
    status: 'ok',
    text,
    format: options.format,
    method: page.method,
    cache_status: cacheStatus,
    completeness: page.completeness,
    truncated: isTruncated,
    http_status: page.httpStatus,
    final_url: page.finalUrl,
    fetched_at: page.fetchedAt,
    extractor_version: extractorVersion,
  }
}

/** The provider does not report when it fetched the page. */
export function contentOfProvider(
  { text: whole, format, completeness }: ProviderContent,
  { max_chars = defaultMaxCharacters }: Pick<ContentOptions, 'max_chars'>,
  fetchedAt: Date | null,
): ResultContent {
  const { text, isTruncated } = truncate(whole, max_chars)
  return {
    status: 'ok',
    text,
    format,
    method: 'provider',
    cache_status: 'unknown',
    completeness,
    truncated: isTruncated,
    fetched_at: fetchedAt?.toISOString() ?? null,
  }
}

export function contentOfFailure(
  { status, code, message, retryable, httpStatus, finalUrl }: PageFailure,
  { method, cacheStatus }: { readonly method?: ResultContent['method']; readonly cacheStatus: CacheStatus },
): ResultContent {
  return {
    status,
    ...(method && { method }),
    cache_status: cacheStatus,
    ...(httpStatus !== undefined && { http_status: httpStatus }),
    ...(finalUrl && { final_url: finalUrl }),
    error: { code, message, retryable },
  }
}

export function timeoutContent(cacheStatus: CacheStatus): ResultContent {
  const message = 'The page did not load in time.'
  return contentOfFailure({ status: 'timeout', code: 'timeout', message, retryable: true }, { cacheStatus })
}
