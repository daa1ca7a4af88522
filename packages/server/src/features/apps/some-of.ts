const maxNamed = 3

/** A few of the names, and how many more there are. */
export function someOf(names: readonly string[]): string {
  const named = names.slice(0, maxNamed).join(', ')
  return names.length > maxNamed ? `${named} and ${names.length - maxNamed} more` : named
}
