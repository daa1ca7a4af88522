import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Host, hostText, parseAddress, parseHost, parseHostAndPort } from './host.ts'

const octets = fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255))

/** Writes an IPv4 address in one of the many forms that resolvers and browsers accept. */
const unusualSpelling = fc
  .record({
    bytes: octets,
    parts: fc.integer({ min: 1, max: 4 }),
    bases: fc.tuple(
      ...Array.from({ length: 4 }, () => fc.constantFrom('decimal', 'octal', 'hex', 'HEX') as fc.Arbitrary<string>),
    ),
    finalDot: fc.boolean(),
    spelling: fc.constantFrom('plain', 'full-width', 'percent', 'ideographic dots'),
  })
  .map(({ bytes, parts, bases, finalDot, spelling }) => {
    const last = bytes.slice(parts - 1).reduce((sum, byte) => sum * 256 + byte, 0)
    const numbers = [...bytes.slice(0, parts - 1), last]
    const text =
      numbers.map((number, index) => inBase(number, bases[index] ?? 'decimal')).join('.') + (finalDot ? '.' : '')
    return { address: bytes.join('.'), text: respell(text, spelling) }
  })

function inBase(number: number, base: string): string {
  if (base === 'octal') return `0${number.toString(8)}`
  if (base === 'hex') return `0x${number.toString(16)}`
  if (base === 'HEX') return `0X${number.toString(16).toUpperCase()}`
  return String(number)
}

function respell(text: string, spelling: string): string {
  if (spelling === 'full-width')
    return text.replaceAll(/[0-9]/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)))
  if (spelling === 'percent') return text.replaceAll(/[0-9]/g, (digit) => `%3${digit}`)
  if (spelling === 'ideographic dots') return text.replaceAll('.', '。')
  return text
}

test('parses every spelling of an address', () => {
  fc.assert(
    fc.property(unusualSpelling, ({ address, text }) => {
      assert.deepEqual(parseHost(text), { kind: 'address', address })
    }),
    { numRuns: 1_000 },
  )
})

test('reads an IPv4 address within IPv6 as the IPv4 address', () => {
  fc.assert(
    fc.property(octets, ([a, b, c, d]) => {
      const hex = [a * 256 + b, c * 256 + d].map((part) => part.toString(16)).join(':')

      assert.deepEqual(parseHost(`[::ffff:${a}.${b}.${c}.${d}]`), { kind: 'address', address: `${a}.${b}.${c}.${d}` })
      assert.deepEqual(parseHost(`[0:0:0:0:0:FFFF:${hex}]`), { kind: 'address', address: `${a}.${b}.${c}.${d}` })
    }),
  )
})

test('never parses as a name what a resolver could interpret as an address', () => {
  const addressLike = fc.stringMatching(/^[0-9a-fA-FxX.:%[\]]{1,24}$/)

  fc.assert(
    fc.property(addressLike, (text) => {
      const host = parseHost(text)

      if (host?.kind === 'name') assert.doesNotMatch(host.name.split('.').at(-1) ?? '', /^(0x[0-9a-f]*|[0-9]+)$/)
    }),
    { numRuns: 5_000 },
  )
})

test('is stable: a formatted host parses to the same host', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.domain(),
        fc.ipV4(),
        fc.ipV6().map((address) => `[${address}]`),
        fc.string(),
      ),
      (text) => {
        const host = parseHost(text)

        if (host) assert.deepEqual(parseHost(hostText(host)), host)
      },
    ),
    { numRuns: 2_000 },
  )
})

test('converts names to their canonical spelling', () => {
  const spellings: [text: string, name: string][] = [
    ['Example.COM', 'example.com'],
    ['example.com.', 'example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['ｅｘａｍｐｌｅ.com', 'example.com'],
    ['_dmarc.example.com', '_dmarc.example.com'],
    ['localhost', 'localhost'],
    ['1.example', '1.example'],
  ]

  for (const [text, name] of spellings) assert.deepEqual(parseHost(text), { kind: 'name', name } satisfies Host, text)
})

test('rejects text that is not a host', () => {
  const texts = [
    ...[
      '',
      '.',
      '..',
      'a..b',
      '127.0.0.1..',
      '1.2.3.4.5',
      '256.1.1.1',
      '1.2.3.08',
      'foo.0x1',
      'example.1',
      '4294967296',
    ],
    ...[
      '[',
      '[]',
      '[::1',
      '::1',
      '::1]',
      '[::1]]',
      '[fe80::1%eth0]',
      '[fe80::1%25eth0]',
      '[::1%lo]',
      '[1.2.3.4]',
      '[v1.x]',
    ],
    ...[
      'a b',
      'a\tb',
      'a\nb',
      ' a',
      'a/b',
      'a?b',
      'a#b',
      'a@b',
      'a\\b',
      'a:80',
      'a%00b',
      'a%2fb',
      'a%3a80',
      '*.example.com',
    ],
    ...['x'.repeat(64), `${'x.'.repeat(127)}xx`, 'http://a', 'a<b', '\u0000', '\ud800'],
  ]

  for (const text of texts) assert.equal(parseHost(text), undefined, JSON.stringify(text))
})

test('reads a port from 1 to 65535, and requires one unless there is a default', () => {
  const address: Host = { kind: 'address', address: '::1' }

  assert.deepEqual(parseHostAndPort('[::1]:65535'), { host: address, port: 65_535 })
  assert.deepEqual(parseHostAndPort('[::1]', 80), { host: address, port: 80 })
  for (const text of [
    '[::1]',
    'a:',
    'a:0',
    'a:65536',
    'a:-1',
    'a:+1',
    'a:1e1',
    'a: 1',
    'a:1 ',
    'a:1:2',
    ':80',
    '::1:80',
  ]) {
    assert.equal(parseHostAndPort(text), undefined, text)
  }
})

test('accepts addresses from a resolver only in the usual notation', () => {
  assert.equal(parseAddress('10.0.0.1'), '10.0.0.1')
  assert.equal(parseAddress('2001:DB8:0:0::1'), '2001:db8::1')
  assert.equal(parseAddress('::ffff:10.0.0.1'), '10.0.0.1')
  for (const text of ['010.0.0.1', '10.1', '0x0a000001', 'fe80::1%eth0', '[::1]', 'localhost', '']) {
    assert.equal(parseAddress(text), undefined, text)
  }
})
