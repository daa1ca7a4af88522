import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type AddressKind, addressKind, translatedAddress } from './address-kind.ts'

test('knows the kind of every range that is not public', () => {
  const kinds: Record<AddressKind, string[]> = {
    public: [
      '1.1.1.1',
      '9.255.255.255',
      '11.0.0.0',
      '172.15.255.255',
      '172.32.0.0',
      '100.63.255.255',
      '100.128.0.0',
      '223.255.255.255',
      '2606:4700::1111',
      '2a00::1',
    ],
    unspecified: ['0.0.0.0', '0.1.2.3', '::'],
    loopback: ['127.0.0.1', '127.255.255.255', '::1'],
    'link-local': ['169.254.0.1', '169.254.169.254', '168.63.129.16', 'fe80::1', 'febf::1'],
    private: [
      '10.0.0.1',
      '10.255.255.255',
      '172.16.0.1',
      '172.31.255.255',
      '192.168.1.1',
      '100.64.0.1',
      '100.100.100.200',
      '100.127.255.255',
      'fc00::1',
      'fd00:ec2::254',
      'fec0::1',
    ],
    multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1'],
    reserved: [
      ...[
        '192.0.0.1',
        '192.0.2.1',
        '192.88.99.1',
        '198.18.0.1',
        '198.19.255.255',
        '198.51.100.1',
        '203.0.113.1',
        '240.0.0.1',
        '255.255.255.255',
      ],
      ...[
        '100::1',
        '2001:db8::1',
        '2001:2::1',
        '2001:10::1',
        '3fff::1',
        '5f00::1',
        '4000::1',
        'e000::1',
        '64:ff9b:1::1',
      ],
      ...[
        '::2',
        '::127.0.0.1',
        '::10.0.0.1',
        '::ffff:0:127.0.0.1',
        '2002:7f00:1::',
        '2002:0808:0808::',
        '2001:0:7f00:1::',
      ],
    ],
  }

  for (const [kind, addresses] of Object.entries(kinds)) {
    for (const address of addresses) assert.equal(addressKind(address), kind, address)
  }
})

test('classifies only allocated IPv6 addresses as public', () => {
  fc.assert(
    fc.property(fc.ipV6(), (address) => {
      const isGlobal = /^[23][0-9a-f]{3}:/i.test(address)

      if (!isGlobal) assert.notEqual(addressKind(address), 'public')
    }),
    { numRuns: 1_000 },
  )
})

test('translates an address as a NAT64 gateway does, and no other', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      assert.equal(translatedAddress(`64:ff9b::${address}`), address)
      assert.equal(translatedAddress(address), address)
      assert.equal(translatedAddress(`2606::${address}`), `2606::${address}`)
    }),
  )
})
