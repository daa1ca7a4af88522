import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseHostAndPort } from '@berth/contract/egress/host.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { EgressFailure } from '../egress-failure.ts'
import { Guard } from './guard.ts'
import { HostAddresses } from './host-addresses.ts'
import { parsePolicy } from './policy.ts'

function permit(destination: string, addresses: readonly string[], allow: string[] = []) {
  const guard = new Guard({ hostAddresses: new HostAddresses(systemClock) })
  guard.setPolicy(parsePolicy({ allow, own_addresses: [] }))
  const parsed = parseHostAndPort(destination)
  assert.ok(parsed)
  return guard.permit(parsed, async () => addresses)
}

test('returns the permitted ones of several addresses, in their order', async () => {
  const permitted = await permit('mixed.test:80', ['127.0.0.1', '8.8.8.8', '10.0.0.1', '2606:4700::1111', '::1'])

  assert.deepEqual(
    permitted.map(({ address }) => address),
    ['8.8.8.8', '2606:4700::1111'],
  )
})

test('rejects a name whose addresses are all blocked, and reports their kind', async () => {
  await assert.rejects(permit('inside.test:80', ['10.0.0.1', '127.0.0.1']), (error) => {
    assert.ok(error instanceof EgressFailure)
    assert.equal(error.kind, 'refused')
    assert.match(error.message, /private address/)
    return true
  })
})

test('does not find a name without addresses', async () => {
  await assert.rejects(permit('nowhere.test:80', []), { kind: 'name-not-found' })
})

test('does not look up addresses', async () => {
  const permitted = await permit('8.8.8.8:80', ['10.0.0.1'])

  assert.deepEqual(permitted, [{ address: '8.8.8.8', port: 80, mayBeOfHost: false }])
})

test('permits an address of this host only if an entry allows it', async () => {
  assert.equal((await permit('8.8.8.8:80', [], ['8.8.8.8']))[0]?.mayBeOfHost, true)
  assert.equal((await permit('8.8.8.8:80', []))[0]?.mayBeOfHost, false)
})

test("resolves the host's own name if an entry contains it, without a query", async () => {
  const nobody = 'host.berth.internal:80'

  assert.deepEqual(
    (await permit(nobody, ['8.8.8.8'], ['host.berth.internal'])).map(({ address }) => address),
    ['127.0.0.1', '::1'],
  )
  await assert.rejects(permit(nobody, ['8.8.8.8']), { kind: 'name-not-found' })
  await assert.rejects(permit(nobody, ['8.8.8.8'], ['127.0.0.1', 'other.internal']), { kind: 'name-not-found' })
  await assert.rejects(permit(nobody, ['8.8.8.8'], ['host.berth.internal:81']), { kind: 'refused' })
})
