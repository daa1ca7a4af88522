import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ownAddresses } from './own-addresses.ts'

const cases: readonly [listens: string, publicUrl: string | undefined, expected: readonly string[]][] = [
  ['127.0.0.1', undefined, ['127.0.0.1:8080']],
  ['::1', undefined, ['[::1]:8080']],
  ['0.0.0.0', undefined, ['0.0.0.0:8080']],
  ['::', undefined, ['0.0.0.0:8080', '[::]:8080']],
  ['127.0.0.1', 'http://berth.test', ['127.0.0.1:8080', 'berth.test:80']],
  ['127.0.0.1', 'http://berth.test:9000/below', ['127.0.0.1:8080', 'berth.test:9000']],
  ['0.0.0.0', 'http://[fd00::1]:9000', ['0.0.0.0:8080', '[fd00::1]:9000']],
  ['127.0.0.1', 'http://127.0.0.1:8080', ['127.0.0.1:8080']],
  ['127.0.0.1', 'https://berth.test', ['127.0.0.1:8080']],
]
for (const [address, publicUrl, expected] of cases) {
  test(`a server on ${address} with the public address ${publicUrl} is reached at ${expected.join(' and ')}`, () => {
    assert.deepEqual(ownAddresses({ address, port: 8080 }, publicUrl), expected)
  })
}
