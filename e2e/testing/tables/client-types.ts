/** The types of a Python client, as listed by its operations, records and unions. */
export interface Shapes {
  readonly operations: readonly {
    readonly method: string
    readonly path: string
    readonly params: readonly string[]
    readonly returns: string
  }[]
  readonly records: Readonly<Record<string, Fields>>
  readonly requests: Readonly<Record<string, Fields>>
  readonly unions: Readonly<Record<string, string>>
}

type Fields = Readonly<Record<string, { readonly type: string; readonly required?: boolean; readonly wire?: string }>>

/** A type. Names are resolved on demand, because types are recursive. */
export type Shape =
  | { readonly kind: 'literal'; readonly values: readonly unknown[] }
  | { readonly kind: 'list'; readonly item: () => Shape }
  | { readonly kind: 'union'; readonly options: readonly Shape[] }
  | { readonly kind: 'record'; readonly fields: () => Readonly<Record<string, ShapedField>> }
  | { readonly kind: 'plain' }

interface ShapedField {
  readonly type: Shape
  readonly required: boolean
}

/** Names that the list has once, but that stand for other records where these are used. */
const ambiguous: readonly string[] = ['Authorization', 'Browser', 'Content', 'Credential', 'Data', 'Vault']
const ambiguousRequests: readonly string[] = ['Config', 'Content', 'LimitUpdateParams']

const wrappers: readonly string[] = ['Optional', 'Required', 'Annotated']
const lists: readonly string[] = ['List', 'Iterable', 'SequenceNotStr', 'SyncOffsetPagination', 'Stream']

export function typesOf(shapes: Shapes) {
  return {
    request: (type: string) => shapeOf(type, (name) => (ambiguousRequests.includes(name) ? {} : shapes.requests[name])),
    answer: (type: string) => shapeOf(type, (name) => (ambiguous.includes(name) ? {} : shapes.records[name])),
  }

  function shapeOf(type: string, find: (name: string) => Fields | undefined): Shape {
    const { name, parts } = partsOf(type)
    const [first = ''] = parts
    if (wrappers.includes(name)) return shapeOf(first, find)
    // A stream consists of single events.
    if (name === 'Stream') return shapeOf(first, find)
    if (lists.includes(name)) return { kind: 'list', item: () => shapeOf(first, find) }
    if (name === 'Literal') return { kind: 'literal', values: parts.map((part) => part.replaceAll("'", '')) }
    if (name === 'Union') return { kind: 'union', options: parts.map((part) => shapeOf(part, find)) }
    const union = shapes.unions[name]
    if (union !== undefined && find(name) === undefined) return shapeOf(union, find)
    const fields = find(name)
    if (!fields) return { kind: 'plain' }
    const shaped = () =>
      Object.fromEntries(
        Object.entries(fields).map(([field, { type: of, required = false, wire }]) => [
          wire ?? aliasOf(of) ?? field,
          { type: shapeOf(of, find), required },
        ]),
      )
    return { kind: 'record', fields: shaped }
  }
}

/** `Annotated[type, alias=name]`: the name of the field on the wire. */
function aliasOf(type: string): string | undefined {
  const { name, parts } = partsOf(type)
  return name === 'Annotated' ? parts[1]?.match(/^alias=(\S+)$/)?.[1] : undefined
}

/** Parses `Name[part, part]`, where parts can be nested. */
function partsOf(type: string): { readonly name: string; readonly parts: readonly string[] } {
  const open = type.indexOf('[')
  if (open === -1) return { name: type, parts: [] }
  const parts: string[] = []
  let depth = 0
  let part = ''
  for (const character of type.slice(open + 1, type.lastIndexOf(']'))) {
    if (character === '[') depth += 1
    if (character === ']') depth -= 1
    if (character === ',' && depth === 0) {
      parts.push(part.trim())
      part = ''
    } else part += character
  }
  return { name: type.slice(0, open), parts: [...parts, part.trim()].filter((each) => each !== '') }
}
