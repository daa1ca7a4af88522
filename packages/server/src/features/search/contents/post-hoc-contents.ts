import type { ContentOptions } from '@berth/contract/search/search-request.ts'
import type { ProviderAccess } from '../providers/known-providers.ts'
import type { PostHocContents, ProviderContent } from '../providers/provider.ts'
import { askProvider, ProviderFailure } from '../providers/provider-client.ts'
import type { ProviderContents } from './content-service.ts'

interface PostHocOptions {
  readonly attemptLimitMilliseconds: number
  readonly deadline: AbortSignal
  readonly signal: AbortSignal
}

/** Requests contents from the provider after a search. Undefined if the provider does not support it. */
export function postHocContents(
  access: ProviderAccess,
  options: ContentOptions,
  limits: PostHocOptions,
): ((urls: readonly string[]) => Promise<ProviderContents>) | undefined {
  const { postHoc } = access.provider
  return postHoc && ((urls) => ask(access, postHoc, urls, options, limits))
}

async function ask(
  access: ProviderAccess,
  postHoc: PostHocContents,
  urls: readonly string[],
  { format, max_age_hours: maxAgeHours }: ContentOptions,
  { attemptLimitMilliseconds, deadline, signal }: PostHocOptions,
): Promise<ProviderContents> {
  const query = { format, maxAgeHours }
  const found = new Map<string, ProviderContent>()
  try {
    for (let start = 0; start < urls.length; start += postHoc.maxUrls) {
      const limit = AbortSignal.any([deadline, signal, AbortSignal.timeout(attemptLimitMilliseconds)])
      const request = postHoc.plan(urls.slice(start, start + postHoc.maxUrls), query)
      const answer = await askProvider(access, request, limit)
      for (const [url, content] of read(access, postHoc, answer, query)) found.set(url, content)
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason
    if (!(error instanceof ProviderFailure)) throw error
    const { code, message, isRetryable: retryable } = error
    // Keeps the contents that were received before the failure.
    if (found.size > 0) return { found }
    return { failure: { status: code === 'timeout' ? 'timeout' : 'error', code, message: `${message}.`, retryable } }
  }
  return { found }
}

function read(
  { provider }: ProviderAccess,
  postHoc: PostHocContents,
  answer: unknown,
  query: Parameters<PostHocContents['read']>[1],
): ReadonlyMap<string, ProviderContent> {
  try {
    return postHoc.read(answer, query)
  } catch (cause) {
    throw new ProviderFailure(provider.slug, 'invalid_response', { cause })
  }
}
