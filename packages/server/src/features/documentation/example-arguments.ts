import type { OpenApiDocument } from '../../openapi/openapi-document.ts'

/** Represents the content of a file. */
export class FileExample {}

export type Example =
  | string
  | number
  | boolean
  | null
  | FileExample
  | readonly Example[]
  | { readonly [name: string]: Example }

export interface Operation {
  readonly operationId?: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content?: Readonly<Record<string, { readonly schema?: Schema }>> }
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema?: Schema
}

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly Example[]
  readonly const?: Example
  readonly default?: Example
  readonly minimum?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly deprecated?: boolean
  readonly description?: string
}

/** The arguments of a sample call: the required ones, or one setting if all are optional. */
export interface SampleArguments {
  /** Names of the path parameters, in order. */
  readonly path: readonly string[]
  /** Set for a body that is a file. */
  readonly content: FileExample | undefined
  /** Parameters of the query and members of the body. */
  readonly fields: Readonly<Record<string, Example>>
  readonly required: ReadonlySet<string>
}

const maxDepth = 4

export function exampleArguments(document: OpenApiDocument, path: string, operation: Operation): SampleArguments {
  const { parameters = [], requestBody } = operation
  const [type, media] = Object.entries(requestBody?.content ?? {})[0] ?? []
  const isFile = type !== undefined && type !== 'application/json' && type !== 'multipart/form-data'
  const read = (schema: Schema) => resolved(document, schema)
  const query = parameters.filter((parameter) => parameter.in === 'query' && parameter.required)
  const body = isFile || !media?.schema ? {} : read(media.schema)
  const members = Object.entries(body.properties ?? {})
  const named = members.filter(([name]) => body.required?.includes(name))
  const optional = members.find(([, schema]) => isPlain(read(schema)))
  const chosen = named.length > 0 || !optional ? named : [optional]
  const example = (name: string, schema: Schema = {}) => exampleOf(document, name, schema, 0)
  return {
    path: [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name),
    content: isFile ? new FileExample() : undefined,
    fields: Object.fromEntries([
      ...query.map(({ name, schema }) => [name, example(name, schema)] as const),
      ...chosen.map(([name, schema]) => [name, example(name, schema)] as const),
    ]),
    required: new Set([...query.map(({ name }) => name), ...named.map(([name]) => name)]),
  }
}

function isPlain({ type, deprecated, description }: Schema): boolean {
  const isScalar = ['string', 'integer', 'number', 'boolean'].includes(String(type))
  return isScalar && !deprecated && !description?.startsWith('Not supported')
}

/** A value that matches the schema. A text without a format gets the name of its member. */
function exampleOf(document: OpenApiDocument, name: string, given: Schema, depth: number): Example {
  const schema = resolved(document, given)
  if (schema.const !== undefined) return schema.const
  if (schema.enum?.[0] !== undefined) return schema.enum[0]
  const type = Array.isArray(schema.type) ? schema.type.find((each) => each !== 'null') : schema.type
  switch (type) {
    case 'integer':
    case 'number':
      return (schema.default as number | undefined) ?? Math.max(1, schema.minimum ?? 1)
    case 'boolean':
      return schema.default === false || schema.default === undefined
    case 'array':
      return depth < maxDepth && schema.items ? [exampleOf(document, name, schema.items, depth + 1)] : []
    case 'object': {
      if (depth >= maxDepth) return {}
      const required = schema.required ?? []
      const members = Object.entries(schema.properties ?? {}).filter(([member]) => required.includes(member))
      return Object.fromEntries(
        members.map(([member, part]) => [member, exampleOf(document, member, part, depth + 1)] as const),
      )
    }
    default:
      if (schema.format === 'binary') return new FileExample()
      if (name.endsWith('url') || schema.format === 'uri') return 'https://example.com'
      return schema.format === 'date-time' ? '2030-01-01T00:00:00Z' : name
  }
}

/** Follows references, and selects the first of several forms. */
function resolved(document: OpenApiDocument, schema: Schema): Schema {
  const { $ref, allOf, anyOf, oneOf, ...own } = schema
  if ($ref) {
    const schemas = document.components?.schemas as Readonly<Record<string, Schema>> | undefined
    return { ...resolved(document, schemas?.[$ref.replace('#/components/schemas/', '')] ?? {}), ...own }
  }
  if (allOf?.[0]) return { ...resolved(document, allOf[0]), ...own }
  const form = (anyOf ?? oneOf)?.find(({ type }) => type !== 'null')
  return form && !own.properties ? { ...resolved(document, form), ...own } : schema
}
