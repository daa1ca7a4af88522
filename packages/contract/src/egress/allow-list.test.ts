import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BerthError } from '../errors.ts'
import { parseAllowList } from './allow-list.ts'

test('reads hosts, addresses and ranges, with and without ports', () => {
  const entries = parseAllowList([
    'App.Test',
    'app.test:8080',
    '10.0.0.1',
    '10.0.0.1:80',
    '[fd00::1]',
    '[FD00::1]:80',
    '10.0.0.0/8',
    'fd00::/8',
    '0.0.0.0/0',
  ])

  assert.deepEqual(
    entries.map((entry) => (entry.kind === 'range' ? `${entry.range[0]}/${entry.range[1]}` : entry)),
    [
      { kind: 'name', name: 'app.test', port: undefined },
      { kind: 'name', name: 'app.test', port: 8080 },
      { kind: 'address', address: '10.0.0.1', port: undefined },
      { kind: 'address', address: '10.0.0.1', port: 80 },
      { kind: 'address', address: 'fd00::1', port: undefined },
      { kind: 'address', address: 'fd00::1', port: 80 },
      '10.0.0.0/8',
      'fd00::/8',
      '0.0.0.0/0',
    ],
  )
})

test('the error of an invalid entry gives the correct form', () => {
  const hints: [entry: string, hint: RegExp][] = [
    ['', /expected host/],
    ['*', /wildcards/],
    ['*.example.com', /wildcards/],
    ['http://example.com', /CIDR/],
    ['example.com/path', /CIDR/],
    ['example.com:0', /expected host/],
    ['example.com:65536', /expected host/],
    ['example.com:http', /expected host/],
    ['::1', /in brackets, as \[::1\]/],
    ['fd00::1:8080', /in brackets/],
    ['0177.0.0.1', /write it as 127\.0\.0\.1/],
    ['127.1:80', /write it as 127\.0\.0\.1:80/],
    ['[::ffff:10.0.0.1]', /write it as 10\.0\.0\.1/],
    ['[fd00:0::1]', /write it as \[fd00::1\]/],
    ['10.0.0.1/8', /begins at 10\.0\.0\.0/],
    ['fd00::1/8', /begins at fd00::/],
    ['10.0.0.0/33', /CIDR/],
    ['10.0.0.0/08', /CIDR/],
    ['10.0.0.0/', /CIDR/],
    ['10.0.0.0/8:80', /CIDR/],
    ['10/8', /CIDR/],
    ['[fd00::]/8', /CIDR/],
    ['::ffff:10.0.0.0/104', /CIDR/],
    ['fe80::%eth0/10', /CIDR/],
  ]

  for (const [entry, hint] of hints) {
    assert.throws(
      () => parseAllowList(['good.test', entry]),
      (error) =>
        error instanceof BerthError &&
        error.code === 'invalid_input' &&
        hint.test(error.message) &&
        error.message.includes(`"${entry}"`),
      entry,
    )
  }
})
