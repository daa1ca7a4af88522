import { z } from 'zod'

/** A schema with resolved references, from which a flag can be generated. */
export interface JsonSchema {
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, JsonSchema>>
  readonly type?: string
  readonly description?: string
  readonly default?: unknown
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly JsonSchema[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | JsonSchema
  readonly items?: JsonSchema
  readonly format?: string
  readonly deprecated?: boolean
  /** Replaces the schema in the API document. */
  readonly override?: JsonSchema
}

/** For input, which clients send. */
export function jsonSchemaOf(schema: z.ZodType): (node: JsonSchema) => JsonSchema {
  const root = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as JsonSchema
  return (node) => resolve(node, root)
}

/** Resolves references and drops `null` from unions. */
function resolve(node: JsonSchema, root: JsonSchema): JsonSchema {
  const { description, default: fallback } = node
  const own = {
    ...(description !== undefined && { description }),
    ...(fallback !== undefined && { default: fallback }),
  }
  if (node.override) return { ...node.override, ...own }
  if (node.$ref) {
    const target = node.$ref === '#' ? root : root.$defs?.[node.$ref.replace('#/$defs/', '')]
    return target ? { ...resolve(target, root), ...own } : node
  }
  const choices = node.anyOf?.map((choice) => resolve(choice, root)).filter(({ type }) => type !== 'null')
  const [only, ...others] = choices ?? []
  if (!only) return node
  if (others.length === 0) return { ...only, ...own }
  const values = choices?.flatMap((choice) => choice.enum ?? (choice.const === undefined ? [] : [choice.const]))
  return values?.length === choices?.length
    ? { ...own, type: 'string', enum: values ?? [] }
    : { ...own, anyOf: choices ?? [] }
}
