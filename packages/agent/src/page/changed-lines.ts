/** Removed lines (`-`) and added lines (`+`) in the order of each snapshot. Lines that only moved are neither. */
export function changedLines(before: readonly string[], after: readonly string[]): readonly string[] {
  return [
    ...missingFrom(after, before).map((line) => `- ${line}`),
    ...missingFrom(before, after).map((line) => `+ ${line}`),
  ]
}

/** Lines of `lines` missing from `others`, as often as they are missing. */
function missingFrom(others: readonly string[], lines: readonly string[]): readonly string[] {
  const counts = new Map<string, number>()
  for (const line of others) counts.set(line.trim(), (counts.get(line.trim()) ?? 0) + 1)
  return lines.filter((line) => {
    const left = counts.get(line.trim()) ?? 0
    counts.set(line.trim(), left - 1)
    return left <= 0
  })
}
