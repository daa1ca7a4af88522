import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from './config.ts'

test('has the documented defaults', () => {
  const config = readConfig({}, { HOME: '/home/somebody' })

  assert.equal(config.port, 8080)
  assert.equal(config.host, '127.0.0.1')
  assert.match(config.dataFolder, /\/\.berth$/)
  assert.equal(config.json, false)
  assert.equal(config.metrics, true)
  assert.equal(config.region, 'us-east')
  assert.deepEqual(config.reserve, { memoryBytes: 256 * 1024 ** 2, diskBytes: 256 * 1024 ** 2 })
  assert.equal(config.apiKey, undefined)
})

test('a flag wins over its twin in the environment, and the twin over the default', () => {
  const environment = {
    BERTH_PORT: '9000',
    BERTH_HOST: '::1',
    BERTH_DATA_DIR: '/srv/berth',
    BERTH_JSON: 'on',
    BERTH_METRICS: 'off',
  }

  const config = readConfig({ port: '0' }, environment)

  assert.equal(config.port, 0)
  assert.equal(config.host, '::1')
  assert.equal(config.dataFolder, '/srv/berth')
  assert.equal(config.json, true)
  assert.equal(config.metrics, false)
})

test('reads the list of allowed destinations', () => {
  const { egressAllow } = readConfig({}, { BERTH_EGRESS_ALLOW: ' 127.0.0.1:9000, 10.0.0.0/8 ,pages.test' })

  assert.deepEqual(egressAllow, ['127.0.0.1:9000', '10.0.0.0/8', 'pages.test'])
})

for (const [flags, environment, named] of [
  [{ port: '65536' }, {}, '--port'],
  [{ port: '' }, {}, '--port'],
  [{ logLevel: 'loud' }, {}, 'log-level'],
  [{}, { BERTH_JSON: 'maybe' }, 'BERTH_JSON'],
  [{}, { BERTH_REGION: 'mars' }, 'BERTH_REGION'],
  [{}, { BERTH_API_KEY: 'short' }, 'BERTH_API_KEY'],
  [{}, { BERTH_API_KEY: 'with a space in the middle' }, 'BERTH_API_KEY'],
  [{}, { BERTH_MASTER_KEY: 'short' }, 'BERTH_MASTER_KEY'],
  [{}, { BERTH_PUBLIC_URL: 'ftp://x' }, 'BERTH_PUBLIC_URL'],
  [{}, { BERTH_PUBLIC_URL: 'https://x?y' }, 'BERTH_PUBLIC_URL'],
  [{}, { DATABASE_URL: 'mysql://x' }, 'DATABASE_URL'],
  [{}, { BERTH_EGRESS_ALLOW: '10.0.0.0/99' }, 'BERTH_EGRESS_ALLOW'],
] as const) {
  test(`names ${named} in what it says of ${JSON.stringify({ ...flags, ...environment })}`, () => {
    assert.throws(() => readConfig(flags, environment), { name: 'StartError', message: new RegExp(named) })
  })
}
