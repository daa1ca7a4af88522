import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { publicEndpoints } from './index.ts'

interface JsonSchema {
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, JsonSchema>>
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly allOf?: readonly JsonSchema[]
}

/** Returns the paths of members named `browser_id`. */
function browserIds(schema: JsonSchema, { $defs = {} }: JsonSchema): readonly string[] {
  const find = ({ $ref, properties = {}, anyOf = [], oneOf = [], allOf = [] }: JsonSchema): readonly string[] => [
    ...Object.entries(properties).flatMap(([name, member]) =>
      name === 'browser_id' ? [name] : find(member).map((below) => `${name}.${below}`),
    ),
    ...[...anyOf, ...oneOf, ...allOf].flatMap(find),
    ...($ref ? find($defs[$ref.split('/').at(-1) ?? ''] ?? {}) : []),
  ]
  return [...new Set(find(schema))]
}

test('an operation whose body names a session declares the field, so that it is forwarded to the session’s server', () => {
  const found = publicEndpoints.flatMap(({ operationId, body, bodyType }) => {
    if (!body || bodyType) return []
    const schema = z.toJSONSchema(body, { io: 'input', unrepresentable: 'any' }) as JsonSchema
    return browserIds(schema, schema).map((field) => [operationId, field])
  })
  const declared = publicEndpoints.flatMap(({ operationId, sessionField }) =>
    sessionField ? [[operationId, sessionField.join('.')]] : [],
  )
  assert.ok(declared.length > 0)
  assert.deepEqual(found, declared)
})
