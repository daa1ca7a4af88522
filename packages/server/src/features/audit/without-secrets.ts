const hidden = '[hidden]'
/** API keys, tokens of sessions and others of three parts, and service account tokens of 1Password. */
const secretShapes = [/sk_[A-Za-z0-9_-]{8,}/g, /eyJ[\w-]+\.[\w-]+\.[\w-]*/g, /ops_[A-Za-z0-9_-]{8,}/g]

/** The text without what must not be kept: whatever looks like a key or a token, and the one that the request came with. */
export function withoutSecrets(text: string, presented: string | undefined): string {
  let clean = presented ? text.replaceAll(presented, hidden) : text
  for (const shape of secretShapes) clean = clean.replaceAll(shape, hidden)
  return clean
}

/** The same of a path, whose characters may be written as numbers. */
export function pathWithoutSecrets(path: string, presented: string | undefined): string {
  const written = withoutSecrets(path, presented)
  const plain = decoded(path)
  const clean = withoutSecrets(plain, presented)
  return clean === plain ? written : clean
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path // No route takes it, either.
  }
}
