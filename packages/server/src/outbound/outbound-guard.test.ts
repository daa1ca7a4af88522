import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import { test } from 'node:test'
import { parseAllowList } from '@berth/contract/egress/allow-list.ts'
import { OutboundGuard } from './outbound-guard.ts'

const guard = new OutboundGuard(
  parseAllowList(['collector.internal:4318', '10.1.2.3', '192.168.7.0/24', 'localhost:4318']),
)

test('public addresses are permitted, and others only when the operator allows them', () => {
  for (const [url, isPermitted] of [
    ['https://collector.example/', true],
    ['https://8.8.8.8/', true],
    ['http://127.0.0.1/', false],
    ['http://2130706433/', false],
    ['http://0x7f.1/', false],
    ['http://[::1]/', false],
    ['http://[::ffff:127.0.0.1]/', false],
    ['http://[64:ff9b::7f00:1]/', false],
    ['http://169.254.169.254/', false],
    ['http://0.0.0.0/', false],
    ['http://10.1.2.3:9/', true],
    ['http://10.1.2.4/', false],
    ['http://192.168.7.9/', true],
    ['http://localhost/', false],
    ['http://localhost:4318/', true],
    ['http://sub.localhost/', false],
  ] as const) {
    assert.equal(guard.refusalOf(url) === undefined, isPermitted, url)
  }
})

test('a name is checked by its addresses at each connection', async () => {
  const addressesOf = (url: string) =>
    new Promise<readonly LookupAddress[]>((resolve, reject) => {
      guard.lookupFor(url)('localhost', { all: true }, (error, found) =>
        error ? reject(error) : resolve(found as unknown as readonly LookupAddress[]),
      )
    })

  await assert.rejects(addressesOf('http://localhost:9/'), /not public/)
  assert.ok((await addressesOf('http://localhost:4318/')).length > 0)
})
