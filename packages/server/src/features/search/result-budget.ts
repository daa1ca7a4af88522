import type { ResultContent } from '@berth/contract/search/search.ts'
import { truncate } from './contents/content-request.ts'

/** The limit of all texts of one response, which is stored for a day. */
const maxCharacters = 8_000_000

/** Truncates contents from the point where their total length exceeds the limit. */
export function withinBudget(contents: readonly (ResultContent | undefined)[]): readonly (ResultContent | undefined)[] {
  let left = maxCharacters
  return contents.map((content) => {
    if (content?.text === undefined) return content
    const { text, isTruncated } = truncate(content.text, left)
    left = Math.max(0, left - text.length)
    return isTruncated ? { ...content, text, truncated: true } : content
  })
}
