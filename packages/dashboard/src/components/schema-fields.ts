import { z } from 'zod'

/** How a form shows a part of a schema. */
export type Field =
  | { readonly kind: 'flag'; readonly initial?: unknown }
  | { readonly kind: 'choice'; readonly options: readonly string[]; readonly initial?: unknown }
  | { readonly kind: 'number'; readonly initial?: unknown }
  | { readonly kind: 'text'; readonly isSecret: boolean; readonly isLong: boolean; readonly initial?: unknown }
  | { readonly kind: 'file' }
  | { readonly kind: 'lines' }
  | { readonly kind: 'pairs' }
  | { readonly kind: 'group'; readonly members: readonly Member[] }
  | { readonly kind: 'json' }

export interface Member {
  readonly name: string
  readonly field: Field
  readonly isRequired: boolean
  readonly description: string | undefined
}

interface JsonSchema {
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: JsonSchema | boolean
  readonly items?: JsonSchema
  readonly anyOf?: readonly JsonSchema[]
  readonly allOf?: readonly JsonSchema[]
  readonly default?: unknown
  readonly description?: string
  readonly deprecated?: boolean
  readonly override?: JsonSchema
  readonly $ref?: string
}

const secretName = /password|secret|token|api_key/
const longName = /bundle|description|policy/

/** The fields of an object schema of the contract, without unsupported and deprecated ones. */
export function fieldsOf(schema: z.ZodType): readonly Member[] {
  const document = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any', reused: 'inline' }) as JsonSchema & {
    readonly $defs?: Readonly<Record<string, JsonSchema>>
  }
  return membersOf(document, document.$defs ?? {})
}

type Definitions = Readonly<Record<string, JsonSchema>>

function membersOf(schema: JsonSchema, definitions: Definitions): readonly Member[] {
  const { properties = {}, required = [] } = resolve(schema, definitions)
  return Object.entries(properties).flatMap(([name, given]) => {
    const property = resolve(given, definitions)
    if (given.deprecated || property.deprecated || property.type === 'null' || property.const !== undefined) return []
    const description = given.description ?? property.description
    if (description !== undefined && /^(Not supported|Refused)/.test(description)) return []
    const field = fieldOf(name, property, definitions)
    const isRequired = required.includes(name) && property.default === undefined
    return [{ name, field, isRequired, description }]
  })
}

function fieldOf(name: string, schema: JsonSchema, definitions: Definitions): Field {
  const { type, default: initial } = schema
  if (schema.enum) return { kind: 'choice', options: schema.enum.map(String), initial }
  switch (type) {
    case 'boolean':
      return { kind: 'flag', initial }
    case 'integer':
    case 'number':
      return { kind: 'number', initial }
    case 'string':
      if (schema.format === 'binary') return { kind: 'file' }
      return { kind: 'text', isSecret: secretName.test(name), isLong: longName.test(name), initial }
    case 'array': {
      const items = resolve(schema.items ?? {}, definitions)
      return items.type === 'string' || items.enum ? { kind: 'lines' } : { kind: 'json' }
    }
    case 'object': {
      if (schema.properties) return { kind: 'group', members: membersOf(schema, definitions) }
      const values = schema.additionalProperties
      const isText = typeof values === 'object' && resolve(values, definitions).type === 'string'
      return { kind: isText ? 'pairs' : 'json' }
    }
    default:
      return { kind: 'json' }
  }
}

/** Follows references, and removes null, which stands for an absent value, from a union. */
function resolve(schema: JsonSchema, definitions: Definitions): JsonSchema {
  const { $ref, override, anyOf, allOf, ...own } = schema
  if (override?.type) return { ...own, ...override }
  if ($ref) return { ...resolve(definitions[$ref.replace('#/$defs/', '')] ?? {}, definitions), ...own }
  if (allOf?.length === 1) return { ...resolve(allOf[0] as JsonSchema, definitions), ...own }
  const others = anyOf?.filter(({ type }) => type !== 'null')
  if (others?.[0]) return { ...resolve(others[0], definitions), ...own }
  const { type } = schema
  if (Array.isArray(type)) return { ...schema, type: type.find((each) => each !== 'null') }
  return schema
}

type Values = Readonly<Record<string, unknown>>

/**
 * The request of a form: without empty fields, except where an empty text is a valid answer. A value that existed
 * before and is now empty is sent as empty, which removes it.
 */
export function requestOf(
  { schema, members }: { readonly schema: z.ZodType; readonly members: readonly Member[] },
  value: Values,
  initial: Values,
): Values {
  let request = (withoutEmpty(value) ?? {}) as Values
  const isRefused = (name: string, candidate: unknown) =>
    schema.safeParse({ ...request, [name]: candidate }).error?.issues.some(({ path }) => path[0] === name) ?? false
  for (const { name, field, isRequired } of members) {
    if (request[name] !== undefined) continue
    const wasThere = withoutEmpty(initial[name]) !== undefined
    const candidates = wasThere ? (emptyValues[field.kind] ?? []) : isRequired && field.kind === 'text' ? [''] : []
    const accepted = candidates.find((candidate) => !isRefused(name, candidate))
    if (accepted !== undefined) request = { ...request, [name]: accepted }
    // The error is shown at the field.
    else if (candidates[0] !== undefined && wasThere) request = { ...request, [name]: candidates[0] }
  }
  return request
}

/** How a request expresses an empty value, depending on the schema. Members of groups are unchanged. */
const emptyValues: Partial<Record<Field['kind'], readonly unknown[]>> = {
  text: ['', null],
  choice: [null],
  number: [null],
  lines: [null, []],
  pairs: [{}, null],
}

/** The value without empty parts. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value) || value instanceof Blob) return value
  if (typeof value !== 'object' || value === null) return value === '' ? undefined : value
  const entries = Object.entries(value).map(([key, member]) => [key, withoutEmpty(member)] as const)
  const kept = entries.filter(([, member]) => member !== undefined)
  return kept.length > 0 ? Object.fromEntries(kept) : undefined
}
