import assert from 'node:assert/strict'
import { test } from 'node:test'
import { requestPath } from './endpoint.ts'

const path = '/vaults/{id_or_name}/items/{key}'

test('encodes any characters of a parameter', () => {
  const name = requestPath(path, { id_or_name: 'a b/../c?d#e', key: '...' })

  assert.equal(name, '/vaults/a%20b%2F..%2Fc%3Fd%23e/items/...')
  assert.equal(new URL(name, 'http://berth.test').pathname, name)
})

for (const key of ['', '.', '..', undefined]) {
  test(`cannot name another resource with the key ${key}`, () => {
    assert.throws(() => requestPath(path, { id_or_name: 'safe', key }), { name: 'RangeError', message: /^key: / })
  })
}
