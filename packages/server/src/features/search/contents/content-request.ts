import type { ContentOptions } from '@berth/contract/search/search-request.ts'
import { ContentOptions as ContentOptionsSchema } from '@berth/contract/search/search-request.ts'
import type { ProviderContent } from '../providers/provider.ts'

/** A result whose content is requested. */
export interface ContentTarget {
  readonly resultId: string
  readonly url: string
  /** The content that the provider sent with the result. */
  readonly provided: ProviderContent | undefined
}

/** The options of a request without any. */
export const defaultContent: ContentOptions = ContentOptionsSchema.parse({})

export const defaultMaxCharacters = 100_000

/** Truncates the text to this number of Unicode characters, and returns whether it was longer. */
export function truncate(text: string, maximum: number): { readonly text: string; readonly isTruncated: boolean } {
  if (text.length <= maximum) return { text, isTruncated: false }
  let end = 0
  for (let characters = 0; characters < maximum && end < text.length; characters++) {
    end += (text.codePointAt(end) as number) > 0xffff ? 2 : 1
  }
  return { text: text.slice(0, end), isTruncated: end < text.length }
}
