import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { parseQuery } from './query-string.ts'

for (const [text, expected] of [
  ['limit=5&offset=10', { limit: '5', offset: '10' }],
  ['tags%5Benv%5D=prod&tags[team]=a+b', { tags: { env: 'prod', team: 'a b' } }],
  ['tags[__proto__]=x', { tags: Object.assign(Object.create(null), { ['__proto__']: 'x' }) }],
  ['category=a&category=b', { category: ['a', 'b'] }],
  ['category[]=a&category[]=b', { category: ['a', 'b'] }],
  ['status=&query=', {}],
  ['tags=x&tags[a]=y', { tags: { a: 'y' } }],
  ['tags[a]=y&tags=x', { tags: { a: 'y' } }],
] as const) {
  test(`reads ${text}`, () => {
    assert.equal(JSON.stringify(parseQuery(text)), JSON.stringify(expected))
  })
}

test('parses any text, or rejects it with bad_request', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 100 }), (text) => {
      try {
        parseQuery(text)
      } catch (error) {
        assert.equal((error as { code: string }).code, 'bad_request')
      }
    }),
  )
})

test('returns every pair that URLSearchParams wrote', () => {
  const word = fc.stringMatching(/^[a-z]{1,8}$/)
  fc.assert(
    fc.property(fc.dictionary(word, word, { noNullPrototype: true }), (pairs) => {
      assert.deepEqual({ ...parseQuery(new URLSearchParams(pairs).toString()) }, pairs)
    }),
  )
})
