/** The beginning of a text. */
export function cut(text: string, maxLength: number): { readonly text: string; readonly isCut: boolean } {
  if (text.length <= maxLength) return { text, isCut: false }
  return { text: text.slice(0, maxLength).toWellFormed(), isCut: true }
}

const structuredBytes = 8 * 1024
const plainBytes = 4 * 1024
const structuredTypes = /[/+](?:json|xml|x-www-form-urlencoded|graphql|x-ndjson)\b/i
const textTypes = /^text\/|javascript|ecmascript|[/+]yaml\b/i

/** How many bytes of a body of this media type are reported. Binary bodies are not. */
export function bodyLimit(mediaType: string): number {
  if (structuredTypes.test(mediaType)) return structuredBytes
  return textTypes.test(mediaType) ? plainBytes : 0
}

/** As many characters as fit into the bytes. */
export function cutBytes(text: string, maxBytes: number): { readonly text: string; readonly isCut: boolean } {
  if (Buffer.byteLength(text) <= maxBytes) return { text, isCut: false }
  const bytes = Buffer.from(text.slice(0, maxBytes)).subarray(0, maxBytes)
  return { text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true }), isCut: true }
}
