import { providerOptions } from '@berth/contract/search/provider-options.ts'
import type { SearchProvider } from '@berth/contract/search/search.ts'
import { z } from 'zod'
import type { Provider } from './providers/provider.ts'

/** Formats a provider for callers. */
export function providerRecord(provider: Provider): SearchProvider {
  const { slug, maxResultsCap, freshnessControl, inlineContent, postHoc, params, examples, notes } = provider
  const id = providerOptions[slug].meta()?.id ?? slug
  // The schema itself instead of a reference to it.
  const { $defs = {} } = z.toJSONSchema(providerOptions[slug], { io: 'input' })
  return {
    slug,
    max_results_cap: maxResultsCap,
    content: { freshness_control: freshnessControl, inline: inlineContent, post_hoc: postHoc !== undefined },
    params: { ...params },
    provider_options: {
      schema: $defs[id],
      schema_ref: `/openapi.json#/components/schemas/${id}`,
      ...(examples && { examples: [...examples] }),
    },
    ...(notes !== undefined && { notes }),
  }
}
