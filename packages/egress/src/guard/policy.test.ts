import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BerthError } from '@berth/contract/errors.ts'
import { parsePolicy, refusalOf, type Target } from './policy.ts'

interface Rules {
  readonly allow?: string[]
  readonly own?: string[]
  /** Addresses of the host's interfaces. */
  readonly host?: string[]
}

/** Returns the refusal of `name>address:port` or `address:port`. */
function judge(target: string, { allow = [], own = [], host = [] }: Rules = {}): string | undefined {
  const [, name, address = '', port] = /^(?:(.+)>)?(.+):(\d+)$/.exec(target) ?? []
  const parsed: Target = { name, address, port: Number(port) }
  return refusalOf(parsePolicy({ allow, own_addresses: own }), parsed, new Set(host))
}

test('permits public addresses and nothing else', () => {
  assert.equal(judge('1.1.1.1:443'), undefined)
  assert.equal(judge('2606:4700::1111:443'), undefined)
  assert.equal(judge('127.0.0.1:80'), 'loopback')
  assert.equal(judge('app.test>10.0.0.1:80'), 'private')
})

test('permits what an address, a range or a name allows, whatever name resolved to it', () => {
  assert.equal(judge('10.0.0.1:80', { allow: ['10.0.0.1'] }), undefined)
  assert.equal(judge('app.test>10.0.0.1:80', { allow: ['10.0.0.0/8'] }), undefined)
  assert.equal(judge('fd00::1:80', { allow: ['fd00::/8'] }), undefined)
  assert.equal(judge('app.test>10.0.0.1:80', { allow: ['app.test'] }), undefined)
  assert.equal(judge('app.test>127.0.0.1:80', { allow: ['app.test:80'] }), undefined)
})

test('permits nothing that an entry does not cover', () => {
  assert.equal(judge('10.0.0.2:80', { allow: ['10.0.0.1'] }), 'private')
  assert.equal(judge('10.0.0.1:81', { allow: ['10.0.0.1:80'] }), 'private')
  assert.equal(judge('11.0.0.1:80', { allow: ['10.0.0.0/8'], host: ['11.0.0.1'] }), 'own')
  assert.equal(judge('other.test>10.0.0.1:80', { allow: ['app.test'] }), 'private')
  assert.equal(judge('sub.app.test>10.0.0.1:80', { allow: ['app.test'] }), 'private')
  assert.equal(judge('10.0.0.1:80', { allow: ['app.test'] }), 'private')
})

test('treats all addresses of the host as its own, including public ones', () => {
  assert.equal(judge('8.8.8.8:22', { host: ['8.8.8.8'] }), 'own')
  assert.equal(judge('8.8.8.8:22', { host: ['8.8.8.8'], allow: ['8.8.8.8'] }), undefined)
  assert.equal(judge('10.0.0.1:22', { host: ['10.0.0.1'], allow: ['10.0.0.0/8'] }), undefined)
})

test('opens the address of berth only to an entry with exactly that port', () => {
  const own = ['127.0.0.1:8080']

  assert.equal(judge('127.0.0.1:8080', { own }), 'own')
  assert.equal(judge('127.0.0.1:8080', { own, allow: ['127.0.0.1', '127.0.0.0/8', '0.0.0.0/0'] }), 'own')
  assert.equal(judge('app.test>127.0.0.1:8080', { own, allow: ['app.test'] }), 'own')
  assert.equal(judge('127.0.0.1:8080', { own, allow: ['127.0.0.1:8081'] }), 'own')
  assert.equal(judge('127.0.0.1:8080', { own, allow: ['127.0.0.1:8080'] }), undefined)
  assert.equal(judge('app.test>127.0.0.1:8080', { own, allow: ['app.test:8080'] }), undefined)
  assert.equal(judge('127.0.0.1:9090', { own, allow: ['127.0.0.1'] }), undefined)
})

test('treats a listener on the unspecified address as one on every address of the host', () => {
  for (const own of [['0.0.0.0:8080'], ['[::]:8080']]) {
    const rules = { own, host: ['10.0.0.1', 'fd00::5'], allow: ['127.0.0.0/8', '10.0.0.0/8', '[::1]', 'fd00::/8'] }

    for (const address of ['127.0.0.1', '127.9.9.9', '::1', '10.0.0.1', 'fd00::5']) {
      assert.equal(judge(`${address}:8080`, rules), 'own', address)
      assert.equal(judge(`${address}:8081`, rules), undefined, address)
    }
    assert.equal(judge('10.0.0.2:8080', rules), undefined)
  }
})

test('knows berth by its name as well', () => {
  assert.equal(judge('berth.test>8.8.8.8:443', { own: ['berth.test:443'] }), 'own')
  assert.equal(judge('other.test>8.8.8.8:443', { own: ['berth.test:443'] }), undefined)
  assert.equal(judge('berth.test>8.8.8.8:80', { own: ['berth.test:443'] }), undefined)
})

test('never permits the unspecified address, which Linux takes for loopback', () => {
  assert.equal(judge('0.0.0.0:80', { allow: ['0.0.0.0/0', '0.0.0.0'] }), 'unspecified')
  assert.equal(judge(':::80', { allow: ['::/0'] }), 'unspecified')
})

test('classifies a NAT64 address by the address that it translates to', () => {
  assert.equal(judge('64:ff9b::808:808:80'), undefined)
  assert.equal(judge('64:ff9b::a00:1:80'), 'private')
  assert.equal(judge('64:ff9b::7f00:1:80'), 'loopback')
  assert.equal(judge('64:ff9b::808:808:80', { host: ['8.8.8.8'] }), 'own')
  assert.equal(judge('64:ff9b::808:808:80', { own: ['8.8.8.8:80'], allow: ['64:ff9b::/96'] }), 'own')
})

test('rejects a malformed policy', () => {
  for (const policy of [
    { allow: ['10.0.0.1/8'], own_addresses: [] },
    { allow: [], own_addresses: ['127.0.0.1'] },
  ]) {
    assert.throws(
      () => parsePolicy(policy),
      (error) => error instanceof BerthError && error.code === 'invalid_input',
    )
  }
})
