/** For names that are compared whatever their case and accents; stored ones have none. */
export function plainLowerCase(text: string): string {
  return text.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase()
}
