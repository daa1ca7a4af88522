import type { ResultContent } from '@berth/contract/search/search.ts'
import { truncate } from './contents/content-request.ts'

/** Of all texts of one answer, which is kept for a day. */
const maxCharacters = 8_000_000

/** The contents, cut from where all of them together are longer than an answer may be. */
export function withinBudget(contents: readonly (ResultContent | undefined)[]): readonly (ResultContent | undefined)[] {
  let left = maxCharacters
  return contents.map((content) => {
    if (content?.text === undefined) return content
    const { text, isTruncated } = truncate(content.text, left)
    left = Math.max(0, left - text.length)
    return isTruncated ? { ...content, text, truncated: true } : content
  })
}
