import { checkText } from './json-body.ts'

/**
 * Parses a query as the official clients write it: `tags[env]=prod` for objects; repeated keys, `key[]=` or commas
 * (split by the schema) for arrays; and an empty value for null, which counts as absent.
 */
export function parseQuery(text: string): Record<string, unknown> {
  const query = Object.create(null) as Record<string, unknown>
  for (const [key, value] of new URLSearchParams(text)) {
    if (value === '') continue
    checkText(key)
    checkText(value)
    const object = /^([^[\]]+)\[([^[\]]+)\]$/.exec(key)
    if (object) setMember(query, object[1] as string, object[2] as string, value)
    else append(query, key.endsWith('[]') ? key.slice(0, -2) : key, value)
  }
  return query
}

/** The query of a URL, without the question mark. */
export function queryOf(url: string): string {
  const start = url.indexOf('?')
  return start === -1 ? '' : url.slice(start + 1)
}

function setMember(query: Record<string, unknown>, name: string, member: string, value: string): void {
  const known = query[name]
  const members = typeof known === 'object' && known !== null && !Array.isArray(known) ? known : Object.create(null)
  query[name] = members
  ;(members as Record<string, string>)[member] = value
}

function append(query: Record<string, unknown>, name: string, value: string): void {
  const known = query[name]
  if (known === undefined) query[name] = value
  else if (Array.isArray(known)) known.push(value)
  else if (typeof known === 'string') query[name] = [known, value]
}
