const connectionHeaders = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

/** Selects the raw headers (name, value, name, …) that do not concern a single connection (RFC 9110, section 7.6.1). */
export function endToEndHeaders(rawHeaders: readonly string[], without: readonly string[] = []): string[] {
  const pairs = pairsOf(rawHeaders)
  const named = pairs
    .filter(([name]) => name.toLowerCase() === 'connection')
    .flatMap(([, value]) => value.split(',').map((option) => option.trim().toLowerCase()))
  const dropped = new Set([...connectionHeaders, ...named, ...without])
  return pairs.filter(([name]) => !dropped.has(name.toLowerCase())).flat()
}

/** Returns all other headers. */
export function headersWithout(rawHeaders: readonly string[], name: string): readonly (readonly [string, string])[] {
  return pairsOf(rawHeaders).filter(([candidate]) => candidate.toLowerCase() !== name)
}

function pairsOf(rawHeaders: readonly string[]): (readonly [string, string])[] {
  const pairs: (readonly [string, string])[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    pairs.push([rawHeaders[index] as string, rawHeaders[index + 1] as string])
  }
  return pairs
}
