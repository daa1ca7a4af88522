/** For names that are compared whatever their case and accents; stored ones have none (facts: profiles-proxies-extensions.md §0). */
export function plainLowerCase(text: string): string {
  return text.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase()
}
