import type { Endpoint } from '@berth/contract/endpoint.ts'
import { type JsonSchema, jsonSchemaOf } from './json-schema.ts'

export type FlagKind = 'text' | 'number' | 'boolean' | 'list' | 'pairs' | 'json' | 'file' | 'parts'

/** A field of a request that can be given on the command line. */
export interface FieldFlag {
  /** Without its dashes: `viewport-width`. */
  readonly name: string
  readonly place: 'query' | 'body'
  /** The position of the value in the query or the body. */
  readonly path: readonly string[]
  readonly kind: FlagKind
  readonly choices: readonly string[]
  readonly description: string
  readonly isRequired: boolean
  /** For `parts`: the fields of each part. */
  readonly members: readonly { readonly name: string; readonly isFile: boolean }[]
}

/** Objects deeper than this are given as JSON. */
const maxDepth = 3

/** Names of flags that every command has. */
const reserved = new Set(['help', 'output', 'output-file', 'data', 'server', 'project'])

/** The flags of an operation: one for each supported field of its query and body, including nested objects. */
export function operationFlags({ query, body, bodyType }: Endpoint): readonly FieldFlag[] {
  const flags = [
    ...(query ? fieldsOf('query', query) : []),
    ...(body && bodyType !== 'application/octet-stream' ? fieldsOf('body', body) : []),
  ]
  const byName = new Map<string, FieldFlag>()
  for (const flag of flags) {
    if (/^(Not supported|Refused)/.test(flag.description)) continue
    const name = reserved.has(flag.name) ? `${flag.place}-${flag.name}` : flag.name
    // `proxy.id` and its older spelling `proxy_id` are one flag.
    if (!byName.has(name)) byName.set(name, { ...flag, name })
  }
  return [...byName.values()]
}

function fieldsOf(place: FieldFlag['place'], schema: NonNullable<Endpoint['body']>): readonly FieldFlag[] {
  const resolve = jsonSchemaOf(schema)
  const visit = (node: JsonSchema, path: readonly string[], isRequired: boolean): readonly FieldFlag[] => {
    const { properties, required = [], description = '' } = node
    const flag = { name: path.join('-').replaceAll('_', '-'), place, path, description, isRequired }
    if (!properties) return [{ ...flag, ...valueKind(node, resolve) }]
    if (path.length === maxDepth) return [{ ...flag, kind: 'json', choices: [], members: [] }]
    return Object.entries(properties).flatMap(([name, member]) => {
      const isNeeded = required.includes(name) && (path.length === 0 || isRequired)
      return visit(resolve(member), [...path, name], isNeeded)
    })
  }
  return visit(resolve({ $ref: '#' }), [], true).filter(({ path }) => path.length > 0)
}

function valueKind(
  node: JsonSchema,
  resolve: (node: JsonSchema) => JsonSchema,
): Pick<FieldFlag, 'kind' | 'choices' | 'members'> {
  const choices = (node.enum ?? (node.const === undefined ? [] : [node.const])).map(String)
  const isBoolean = node.type === 'boolean' || choices.toSorted().join() === 'false,true'
  if (isBoolean) return { kind: 'boolean', choices: [], members: [] }
  if (node.format === 'binary') return { kind: 'file', choices: [], members: [] }
  if (node.type === 'integer' || node.type === 'number') return { kind: 'number', choices, members: [] }
  if (node.type === 'string') return { kind: 'text', choices, members: [] }
  if (node.type === 'array') return listKind(resolve(node.items ?? {}), resolve)
  const values = typeof node.additionalProperties === 'object' ? resolve(node.additionalProperties) : {}
  return { kind: node.type === 'object' && values.type === 'string' ? 'pairs' : 'json', choices: [], members: [] }
}

function listKind(
  item: JsonSchema,
  resolve: (node: JsonSchema) => JsonSchema,
): Pick<FieldFlag, 'kind' | 'choices' | 'members'> {
  if (item.type === 'string') return { kind: 'list', choices: (item.enum ?? []).map(String), members: [] }
  const members = Object.entries(item.properties ?? {}).map(([name, member]) => ({
    name,
    isFile: resolve(member).format === 'binary',
  }))
  return members.some(({ isFile }) => isFile)
    ? { kind: 'parts', choices: [], members }
    : { kind: 'json', choices: [], members: [] }
}
