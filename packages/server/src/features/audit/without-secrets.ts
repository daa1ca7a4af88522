const hidden = '[hidden]'
/** API keys, session tokens and other tokens of three parts, and 1Password service account tokens. */
const secretShapes = [/sk_[A-Za-z0-9_-]{8,}/g, /eyJ[\w-]+\.[\w-]+\.[\w-]*/g, /ops_[A-Za-z0-9_-]{8,}/g]

/** Removes secrets from the text: everything that looks like a key or token, and the credential of the request. */
export function withoutSecrets(text: string, presented: string | undefined): string {
  let clean = presented ? text.replaceAll(presented, hidden) : text
  for (const shape of secretShapes) clean = clean.replaceAll(shape, hidden)
  return clean
}

/** The same for a path, which may be percent-encoded. */
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
    return path // No route matches it either.
  }
}
