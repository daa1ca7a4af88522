import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { fieldsOf, requestOf } from './schema-fields.ts'

const Schema = z.object({
  prefix: z.string().max(10),
  bucket: z.string().min(1),
  note: z.string().nullish(),
  key: z.string().min(1).nullish(),
  types: z.array(z.string()).nullish(),
  tags: z.record(z.string(), z.string()).optional(),
  size: z.number().optional(),
})

const form = { schema: Schema, members: fieldsOf(Schema) }
const full = { prefix: 'p', bucket: 'b', note: 'n', key: 'k', types: ['a'], tags: { a: 'b' }, size: 1 }

/** What a form sends when its fields change from `initial` to `value`. */
const cases: readonly (readonly [title: string, initial: object, value: object, request: object])[] = [
  ['leaves out what is empty', {}, { bucket: 'b', note: '', tags: {} }, { bucket: 'b', prefix: '' }],
  ['sends an empty text that is asked for and permitted', {}, { prefix: '' }, { prefix: '' }],
  ['sends what is unchanged', full, full, full],
  [
    'takes away what was there, as the schema permits',
    full,
    { prefix: '', bucket: 'b', note: '', key: '' },
    { prefix: '', bucket: 'b', note: '', key: null, types: null, tags: {}, size: null },
  ],
]

for (const [title, initial, value, request] of cases) {
  test(`a form ${title}`, () => {
    assert.deepEqual(requestOf(form, value as never, initial as never), request)
  })
}

test('removing a required value is an error at its field', () => {
  const request = requestOf(form, { prefix: 'p', bucket: '' }, { prefix: 'p', bucket: 'b' })

  const issues = Schema.safeParse(request).error?.issues ?? []
  assert.deepEqual(
    issues.map(({ path }) => path),
    [['bucket']],
  )
})
