import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type HostPattern,
  HostPatternMap,
  hostPatternText,
  matchesHost,
  overlap,
  parseHostPattern,
} from './host-pattern.ts'

/** Few labels, so that names often are subdomains of each other. */
const label = fc.constantFrom('a', 'b', 'c', 'x-1')
const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'))
const pattern: fc.Arbitrary<HostPattern> = fc.record({ isWildcard: fc.boolean(), name }, { noNullPrototype: true })

test('reads names and wildcards in any spelling, and nothing else', () => {
  const read = ['Example.COM', 'example.com.', '*.Example.com', 'intranet', 'bücher.example', '*.a_b.c'].map((text) => {
    const parsed = parseHostPattern(text)
    return parsed && hostPatternText(parsed)
  })
  const refused = [
    ...[
      '',
      '*',
      '*.',
      '**.a.b',
      'a.*.b',
      '*a.b',
      '*.*.b',
      'a b',
      'a/b',
      'http://a.b',
      'a.b:80',
      '*.a.b:80',
      'user@a.b',
    ],
    ...['10.0.0.1', '*.10.0.0.1', '0x7f.1', '[::1]', '::1', 'a..b', '.a', 'a.123'],
  ].filter((text) => parseHostPattern(text))

  assert.deepEqual(read, [
    'example.com',
    'example.com',
    '*.example.com',
    'intranet',
    'xn--bcher-kva.example',
    '*.a_b.c',
  ])
  assert.deepEqual(refused, [])
})

test('a wildcard matches every name below it and not the name itself, and a name only itself', () => {
  fc.assert(
    fc.property(name, fc.array(label, { maxLength: 3 }), (base, labels) => {
      const host = [...labels, base].join('.')

      assert.equal(matchesHost({ isWildcard: true, name: base }, host), labels.length > 0)
      assert.equal(matchesHost({ isWildcard: false, name: base }, host), labels.length === 0)
      assert.equal(matchesHost({ isWildcard: true, name: base }, `x${base}`), false)
    }),
  )
})

test('of all matching patterns, the exact one is found, otherwise the one with the longest name', () => {
  fc.assert(
    fc.property(fc.uniqueArray(pattern, { selector: hostPatternText, maxLength: 12 }), name, (patterns, host) => {
      const matching = patterns.filter((candidate) => matchesHost(candidate, host))
      const rank = ({ isWildcard, name: { length } }: HostPattern) => (isWildcard ? length : Number.POSITIVE_INFINITY)
      const [best] = matching.toSorted((one, other) => rank(other) - rank(one))

      const found = new HostPatternMap(patterns.map((candidate) => [candidate, candidate])).find(host)

      assert.deepEqual(found, best)
    }),
  )
})

test('the order in which patterns are given does not matter', () => {
  fc.assert(
    fc.property(fc.uniqueArray(pattern, { selector: hostPatternText, maxLength: 8 }), name, (patterns, host) => {
      const entries = patterns.map((candidate) => [candidate, hostPatternText(candidate)] as const)

      assert.equal(new HostPatternMap(entries).find(host), new HostPatternMap(entries.toReversed()).find(host))
    }),
  )
})

test('two patterns overlap exactly when some name matches both', () => {
  fc.assert(
    fc.property(pattern, pattern, (one, other) => {
      // If a wildcard and another pattern both match some name, they both match the longer of their names or a name
      // below it.
      const candidates = [one.name, other.name, `z.${one.name}`, `z.${other.name}`]
      const shared = candidates.some((host) => matchesHost(one, host) && matchesHost(other, host))

      assert.equal(overlap(one, other), shared)
      assert.equal(overlap(other, one), shared)
    }),
  )
})

test('a formatted pattern parses to the same pattern', () => {
  fc.assert(fc.property(pattern, (written) => assert.deepEqual(parseHostPattern(hostPatternText(written)), written)))
})
