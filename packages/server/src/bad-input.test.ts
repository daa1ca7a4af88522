import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { operations } from '@berth/contract/agent/operations.ts'
import { type Endpoint, errorsOf } from '@berth/contract/endpoint.ts'
import { BerthError, publicCodeOf } from '@berth/contract/errors.ts'
import { publicEndpoints } from '@berth/contract/index.ts'
import { validate } from '@berth/runtime/http/validate.ts'
import { z } from 'zod'
import { FakeProviders } from './testing/fakes/fake-providers.ts'
import { TestServer } from './testing/server-test.ts'

/*
 * Sends each operation invalid values in each field of its body and each parameter of its query. A field gets a few of
 * the values in turn; with --deep, all of them.
 */

const providers = await FakeProviders.open()
const server = await TestServer.open({
  auditExport: { buckets: ['bucket'], endpoint: 'http://127.0.0.1:9' },
  search: providers.config(['searxng']),
})
after(async () => {
  await server.close()
  await providers.close()
})
const project = await server.project()

const many = Array.from({ length: 2_000 }, (_, index) => index)
const values: readonly unknown[] = [
  ...[
    null,
    '',
    ' ',
    'a\0b',
    '\ud800',
    'x'.repeat(100_000),
    '../../etc/passwd',
    '💥',
    'a\nb',
    '%00',
    '\u202e',
    '2026-13-45',
  ],
  ...['http://[', 'javascript:alert(1)', 'https://user:secret@x.test/', 'file:///etc/passwd'],
  ...[0, -1, 1.5, 1e308, 2 ** 31, 2 ** 53, 1e-320, true, false],
  ...[
    [],
    {},
    [null],
    [[]],
    [{}],
    ['x'],
    { constructor: {} },
    many,
    many.map(() => ({})),
    Object.fromEntries(many.entries()),
  ],
]
const atOnce = process.env.BERTH_DEEP === '1' ? values.length : 1

interface Schema {
  readonly $ref?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly default?: unknown
  readonly type?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly maxItems?: number
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly $defs?: Readonly<Record<string, Schema>>
}

type Place = readonly string[]

/** Every body that differs from a plausible one in one place. */
function* brokenBodies(endpoint: Endpoint): Generator<{ readonly place: Place; readonly body: unknown }> {
  if (!endpoint.body || endpoint.bodyType) return
  const root = z.toJSONSchema(endpoint.body, { io: 'input', unrepresentable: 'any' }) as Schema
  const options = root.oneOf ?? root.anyOf ?? [root]
  let turn = endpoint.operationId.length
  for (const option of options) {
    const body = sampleOf(option, root)
    for (const place of placesIn(body)) {
      for (let count = 0; count < atOnce; count++)
        yield { place, body: replaced(body, place, values[turn++ % values.length]) }
    }
  }
}

function sampleOf(schema: Schema, root: Schema, depth = 0): unknown {
  const { $ref, anyOf, oneOf, properties, items } = schema
  if ($ref !== undefined) return sampleOf(root.$defs?.[$ref.split('/').at(-1) ?? ''] ?? {}, root, depth)
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  const options = oneOf ?? anyOf
  if (options) return sampleOf(options.find(({ type }) => type !== 'null') ?? {}, root, depth)
  if (properties && depth < 4) {
    const fields = Object.entries(properties).filter(
      ([name, { type }]) => type !== 'null' || schema.required?.includes(name),
    )
    return Object.fromEntries(fields.map(([name, field]) => [name, sampleOf(field, root, depth + 1)]))
  }
  if (schema.type === 'array') return [sampleOf(items ?? {}, root, depth + 1)]
  if (schema.type === 'object') return {}
  if (schema.type === 'integer' || schema.type === 'number') return schema.minimum ?? 1
  return schema.type === 'boolean' ? false : 'a'
}

function* placesIn(value: unknown, place: Place = []): Generator<Place> {
  yield place
  if (typeof value !== 'object' || value === null) return
  for (const [name, inner] of Object.entries(value)) yield* placesIn(inner, [...place, name])
}

function replaced(value: unknown, [name, ...rest]: Place, by: unknown): unknown {
  if (name === undefined) return by
  const inner = replaced((value as Record<string, unknown>)[name], rest, by)
  return Array.isArray(value) ? value.with(Number(name), inner) : { ...(value as object), [name]: inner }
}

interface Answer {
  readonly code?: unknown
  readonly message?: unknown
}

/** Describes what is wrong with an error response. The reported field may be a neighbour of the changed one. */
function faultOf(endpoint: Endpoint, status: number, answer: Answer | undefined): string | undefined {
  if (status >= 500) return 'fails'
  if (status < 400) return undefined
  if (typeof answer?.message !== 'string' || answer.message.length > 2_001) return 'has no short message'
  if (!errorsOf(endpoint).some((code) => publicCodeOf(code) === answer.code)) return 'has an undeclared code'
  const namesField = /^[\w$"[]|^(The|Text|query|body|path)\b/.test(answer.message)
  return namesField ? undefined : 'names no field'
}

const isAgents = ({ operationId }: Endpoint) => operations.some((operation) => operation.operationId === operationId)
const ownEndpoints = publicEndpoints.filter((endpoint) => !isAgents(endpoint))

for (const endpoint of ownEndpoints.filter(({ body, query }) => body ?? query)) {
  test(`${endpoint.operationId} rejects invalid values`, async () => {
    const path = endpoint.path.replaceAll(/\{\w+\}/g, 'none')
    const faults: string[] = []
    const ask = async (address: string, body: unknown, what: string) => {
      const answer = await project.call<Answer>(endpoint.method, address, body)
      const fault = faultOf(endpoint, answer.status, answer.body)
      if (fault) faults.push(`${what}: ${answer.status} ${JSON.stringify(answer.body)} ${fault}`)
    }

    for (const { place, body } of brokenBodies(endpoint)) await ask(path, body, place.join('.'))
    for (const [name, text] of brokenQueries(endpoint)) await ask(`${path}?${name}=${text}`, undefined, name)

    assert.deepEqual(faults, [])
  })
}

function* brokenQueries({ query, operationId, method }: Endpoint): Generator<readonly [name: string, text: string]> {
  if (!query || method !== 'GET') return
  const { properties = {} } = z.toJSONSchema(query, { io: 'input', unrepresentable: 'any' }) as Schema
  const texts = values
    .map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
    .filter((text) => text.length < 5_000)
  let turn = operationId.length
  for (const name of Object.keys(properties)) {
    for (let count = 0; count < atOnce; count++) {
      yield [name, encodeURIComponent((texts[turn++ % texts.length] ?? '').toWellFormed())]
    }
  }
}

test('operations of agents reject invalid values with the name of the field', () => {
  for (const endpoint of operations) {
    for (const { place, body } of brokenBodies(endpoint)) {
      try {
        validate(endpoint.body as z.ZodType, body, 'body')
      } catch (error) {
        assert.ok(error instanceof BerthError && error.code === 'invalid_input', `${endpoint.operationId} ${place}`)
      }
    }
  }
})

/** The agent compares the number with the screen or with its own limit. */
const checkedElsewhere = ['x', 'y', 'width', 'height', 'path', 'typo_chance']

test('repeats and waits of computer controls are limited', () => {
  for (const { path, operationId, body } of operations) {
    if (!path.includes('/computer/') || !body) continue
    const root = z.toJSONSchema(body, { io: 'input', unrepresentable: 'any', reused: 'inline' }) as Schema
    const unlimited = [...unlimitedFields(root, root)].filter((name) => !checkedElsewhere.includes(name))

    assert.deepEqual(unlimited, [], operationId)
  }
})

function* unlimitedFields(schema: Schema, root: Schema, name = ''): Generator<string> {
  const { $ref, anyOf, type, maximum = Number.MAX_SAFE_INTEGER, maxItems, items, properties = {} } = schema
  if ($ref !== undefined) yield* unlimitedFields(root.$defs?.[$ref.split('/').at(-1) ?? ''] ?? {}, root, name)
  for (const option of anyOf ?? []) yield* unlimitedFields(option, root, name)
  if ((type === 'integer' || type === 'number') && maximum >= Number.MAX_SAFE_INTEGER) yield name
  if (type === 'array' && maxItems === undefined) yield name
  if (items) yield* unlimitedFields(items, root, name)
  for (const [field, inner] of Object.entries(properties)) yield* unlimitedFields(inner, root, field)
}
