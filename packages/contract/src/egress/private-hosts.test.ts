import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseHostAndPort } from './host.ts'
import {
  defaultPrivateHosts,
  isPrivateHost,
  PrivateHostError,
  parsePrivateHost,
  privateHostText,
} from './private-hosts.ts'

test('accepts names, wildcards, private addresses and private ranges, in canonical spelling', () => {
  const spellings: Record<string, string> = {
    'DB.Internal': 'db.internal',
    'db.internal.:5432': 'db.internal:5432',
    '*.corp.Example': '*.corp.example',
    '*.corp.example:8443': '*.corp.example:8443',
    localhost: 'localhost',
    '10.1.30.63': '10.1.30.63',
    '10.1.30.63:8080': '10.1.30.63:8080',
    '100.127.255.255': '100.127.255.255',
    '[fd00::1]': '[fd00::1]',
    '[FD00:0::1]:443': '[fd00::1]:443',
    '10.0.0.0/8': '10.0.0.0/8',
    '172.31.0.0/16': '172.31.0.0/16',
    '192.168.1.1/32': '192.168.1.1/32',
    'fd00::/8': 'fd00::/8',
    'fc00::/7': 'fc00::/7',
  }

  const read = Object.fromEntries(
    Object.keys(spellings).map((entry) => [entry, privateHostText(parsePrivateHost(entry))]),
  )

  assert.deepEqual(read, spellings)
})

const rules: Record<string, readonly string[]> = {
  'a scheme': ['http://db.internal', 'tcp://10.0.0.1'],
  'a path': ['db.internal/x', '10.0.0.1/x', '[fd00::1]/x'],
  'a wildcard that catches all, or stands elsewhere': ['*', '*.', '**', 'a.*.b', '*db.internal', '*.*.internal'],
  'a wildcard over one label': ['*.internal', '*.com'],
  'host bits in a range': ['10.0.0.1/8', '192.168.1.0/16', 'fd00::1/64'],
  'a range that is not private, or not as a whole': [
    ...['8.8.8.0/24', '127.0.0.0/8', '169.254.0.0/16', '0.0.0.0/0', '10.0.0.0/7', '172.0.0.0/8', '::/0'],
    ...['fe80::/10', '::1/128', '2001:db8::/32', '100.0.0.0/8'],
  ],
  'a range with a port': ['10.0.0.0/8:80', '[fd00::/8]:80'],
  'a range in brackets': ['[fd00::/8]'],
  'a prefix that is none': ['10.0.0.0/33', '10.0.0.0/08', '10.0.0.0/', 'fd00::/129', '10.0.0/8'],
  'an address that is not private': [
    '8.8.8.8',
    '127.0.0.1',
    '169.254.169.254',
    '0.0.0.0',
    '[::1]',
    '[fe80::1]',
    '[2001:db8::1]',
  ],
  'an IPv6 address without brackets': ['fd00::1', 'fd00::1:8080'],
  'an unusual spelling of an address': ['10.1', '0x0a.0.0.1', '010.0.0.1', '167772161'],
  'a port that is none': ['db.internal:0', 'db.internal:65536', 'db.internal:', 'db.internal:http', '10.0.0.1:99999'],
  'what is no host': ['', ' ', 'a b', 'user@db.internal', '[db.internal]', 'db..internal'],
}
for (const [rule, entries] of Object.entries(rules)) {
  test(`rejects ${rule}`, () => {
    for (const entry of entries) assert.throws(() => parsePrivateHost(entry), PrivateHostError, entry)
  })
}

test('by default, private addresses are private and names are not', () => {
  const entries = defaultPrivateHosts.map(parsePrivateHost)
  const isPrivate = (text: string) => {
    const destination = parseHostAndPort(text, 80)
    return destination !== undefined && entries.some((entry) => isPrivateHost(entry, destination))
  }

  const inside = [
    '10.0.0.1',
    '172.16.0.1',
    '172.31.255.255',
    '192.168.0.1',
    '100.64.0.1',
    '[fd12::1]',
    '[::ffff:10.0.0.1]',
  ]
  const outside = ['9.255.255.255', '172.32.0.1', '100.128.0.1', '127.0.0.1', '169.254.1.1', '[fe80::1]', 'ten.test']

  assert.deepEqual(inside.filter(isPrivate), inside)
  assert.deepEqual(outside.filter(isPrivate), [])
})

test('an entry with a port applies only to that port, and a range to all ports', () => {
  const matches = (entry: string, text: string) => {
    const destination = parseHostAndPort(text)
    return destination !== undefined && isPrivateHost(parsePrivateHost(entry), destination)
  }

  assert.equal(matches('db.internal:5432', 'db.internal:5432'), true)
  assert.equal(matches('db.internal:5432', 'db.internal:80'), false)
  assert.equal(matches('db.internal', 'db.internal:80'), true)
  assert.equal(matches('10.0.0.1:81', '10.0.0.1:80'), false)
  assert.equal(matches('10.0.0.0/24', '10.0.0.7:9999'), true)
  assert.equal(matches('*.corp.example:443', 'a.b.corp.example:443'), true)
  assert.equal(matches('*.corp.example', 'corp.example:443'), false)
})

test('of all ranges within the private ones, only those without host bits are accepted, and they contain their addresses', () => {
  const octet = fc.integer({ min: 0, max: 255 })
  fc.assert(
    fc.property(fc.tuple(octet, octet, octet), fc.integer({ min: 8, max: 32 }), ([b, c, d], length) => {
      const address = ((10 << 24) | (b << 16) | (c << 8) | d) >>> 0
      const mask = (0xffff_ffff << (32 - length)) >>> 0
      const isCanonical = (address & mask) >>> 0 === address
      const entry = `10.${b}.${c}.${d}/${length}`

      if (!isCanonical) return assert.throws(() => parsePrivateHost(entry), PrivateHostError)
      const parsed = parsePrivateHost(entry)
      const destination = parseHostAndPort(`10.${b}.${c}.${d}:80`)
      assert.equal(privateHostText(parsed), entry)
      assert.equal(destination && isPrivateHost(parsed, destination), true)
    }),
  )
})
