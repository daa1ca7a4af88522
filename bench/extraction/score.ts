/** The F1 score of the words found, each counted as often as it occurs. */
export function f1(found: string, expected: string): number {
  const [foundWords, expectedWords] = [wordsOf(found), wordsOf(expected)]
  let common = 0
  for (const [word, count] of foundWords.counts) common += Math.min(count, expectedWords.counts.get(word) ?? 0)
  return common === 0 ? 0 : (2 * common) / (foundWords.total + expectedWords.total)
}

function wordsOf(text: string) {
  const words = text.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu) ?? []
  const counts = new Map<string, number>()
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
  return { counts, total: words.length }
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
