import type { ContentOptions } from '@berth/contract/search/search-request.ts'
import { ContentOptions as ContentOptionsSchema } from '@berth/contract/search/search-request.ts'
import type { ProviderContent } from '../providers/provider.ts'

/** A result whose content is wanted. */
export interface ContentTarget {
  readonly resultId: string
  readonly url: string
  /** What the provider has sent with the result. */
  readonly provided: ProviderContent | undefined
}

/** Of a request that says nothing else. */
export const defaultContent: ContentOptions = ContentOptionsSchema.parse({})

export const defaultMaxCharacters = 100_000

/** At most so many Unicode characters of the text, and whether there were more. */
export function truncate(text: string, maximum: number): { readonly text: string; readonly isTruncated: boolean } {
  if (text.length <= maximum) return { text, isTruncated: false }
  let end = 0
  for (let characters = 0; characters < maximum && end < text.length; characters++) {
    end += (text.codePointAt(end) as number) > 0xffff ? 2 : 1
  }
  return { text: text.slice(0, end), isTruncated: end < text.length }
}
