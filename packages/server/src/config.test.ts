import assert from 'node:assert/strict'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
  assert.deepEqual(config.machines.reserve, { memoryBytes: 256 * 1024 ** 2, diskBytes: 256 * 1024 ** 2 })
  assert.equal(config.driver, 'local')
  assert.equal(config.drainSeconds, 0)
  assert.equal(config.hasStandby, true)
  assert.equal(config.reserve, 'auto')
  assert.equal(config.apiKey, undefined)
  assert.deepEqual(config.blobs, { kind: 'folder' })
})

test('clients may continue for a while if sessions move to other servers, or as long as configured', () => {
  const seconds = (environment: Record<string, string>) => readConfig({}, environment).drainSeconds

  assert.equal(seconds({ BERTH_DRIVER: 'kubernetes' }), 20)
  assert.equal(seconds({ BERTH_DRAIN_SECONDS: '300' }), 300)
  assert.throws(() => seconds({ BERTH_DRAIN_SECONDS: 'long' }), /BERTH_DRAIN_SECONDS/)
})

test('a flag takes precedence over its environment variable, and that over the default', () => {
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

test('reads the storage of blobs', () => {
  const s3 = { BERTH_BLOBS: 's3', BERTH_S3_BUCKET: 'berth-blobs' }

  assert.deepEqual(readConfig({}, s3).blobs, {
    kind: 's3',
    bucket: 'berth-blobs',
    prefix: '',
    endpoint: undefined,
    region: 'us-east-1',
    pathStyle: false,
  })
  const elsewhere = { BERTH_S3_ENDPOINT: 'http://127.0.0.1:9000', AWS_REGION: 'eu-1', BERTH_S3_PREFIX: 'a/b-' }
  const { blobs } = readConfig({}, { ...s3, ...elsewhere })
  assert.deepEqual(blobs, {
    ...blobs,
    endpoint: 'http://127.0.0.1:9000',
    region: 'eu-1',
    prefix: 'a/b-',
    pathStyle: true,
  })
  assert.partialDeepStrictEqual(readConfig({}, { ...s3, ...elsewhere, BERTH_S3_PATH_STYLE: 'off' }).blobs, {
    pathStyle: false,
  })
})

test('reads the model of analyses, which has a name', () => {
  const model = { BERTH_MODEL_URL: 'http://127.0.0.1:11434/v1', BERTH_MODEL_NAME: 'small' }

  assert.deepEqual(readConfig({}, model).model, { url: model.BERTH_MODEL_URL, name: 'small', key: undefined })
  assert.equal(readConfig({}, {}).model, undefined)
  for (const name of ['BERTH_MODEL_URL', 'BERTH_MODEL_NAME'] as const) {
    assert.throws(() => readConfig({}, { [name]: model[name] }), { name: 'StartError', message: new RegExp(name) })
  }
})

test('reads the region', () => {
  assert.equal(readConfig({}, { BERTH_REGION: 'us-west' }).region, 'us-west')
})

test('reads the captcha solver', () => {
  const [url, key] = ['https://solver.test/solve', 'k']
  const { captchaSolver } = readConfig({}, { BERTH_CAPTCHA_SOLVER_URL: url, BERTH_CAPTCHA_SOLVER_KEY: key })

  assert.deepEqual([captchaSolver?.url, captchaSolver?.key], [url, key])
  assert.equal(readConfig({}, {}).captchaSolver, undefined)
  for (const environment of [{ BERTH_CAPTCHA_SOLVER_KEY: key }, { BERTH_CAPTCHA_SOLVER_URL: 'solver.test' }]) {
    assert.throws(() => readConfig({}, environment), { name: 'StartError', message: /BERTH_CAPTCHA_SOLVER/ })
  }
})

test('reads the model of logins, apart from that of analyses', () => {
  const { model, loginModel } = readConfig(
    {},
    { BERTH_LOGIN_MODEL_URL: 'http://127.0.0.1:11434/v1', BERTH_LOGIN_MODEL_NAME: 'small', BERTH_LOGIN_MODEL_KEY: 'k' },
  )

  assert.equal(model, undefined)
  assert.deepEqual(loginModel, { url: 'http://127.0.0.1:11434/v1', name: 'small', key: 'k' })
})

test('reads the list of allowed destinations', () => {
  const { egressAllow } = readConfig({}, { BERTH_EGRESS_ALLOW: ' 127.0.0.1:9000, 10.0.0.0/8 ,pages.test' })

  assert.deepEqual(egressAllow, ['127.0.0.1:9000', '10.0.0.0/8', 'pages.test'])
})

test("reads the operator's proxies, from the variable or from a file that it names", async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'berth-config-'))
  const pools = { isp: [{ url: 'socks5://u%40x:p%3Aw@[2001:db8::1]', country: 'de' }] }
  const file = join(folder.path, 'pools.json')
  await writeFile(file, JSON.stringify(pools))
  const read = (BERTH_PROXY_POOLS: string) =>
    readConfig({}, { BERTH_PROXY_POOLS, BERTH_STEALTH_PROXY: 'https://proxy.test' }).proxying

  const { pools: inline, stealthProxy, checkUrl } = read(JSON.stringify(pools))

  const upstream = { protocol: 'socks5', host: '2001:db8::1', port: 1080, username: 'u@x', password: 'p:w' }
  assert.deepEqual(inline, { isp: [{ country: 'DE', upstream }] })
  assert.deepEqual(read(file).pools, inline)
  assert.deepEqual(stealthProxy, { protocol: 'https', host: 'proxy.test', port: 443 })
  assert.equal(checkUrl, undefined)
})

for (const pools of [
  '{',
  '[]',
  '{"custom":[]}',
  '{"isp":[{"url":"ftp://u:secret@h"}]}',
  '{"isp":[{"url":"http://u:secret@h/x"}]}',
]) {
  test(`reports the fault of the pools ${pools} without a password`, () => {
    assert.throws(
      () => readConfig({}, { BERTH_PROXY_POOLS: pools }),
      (error: Error) => {
        assert.match(error.message, /^BERTH_PROXY_POOLS: /)
        assert.doesNotMatch(error.message, /secret/)
        return true
      },
    )
  })
}

const shared = {
  BERTH_SERVER_ADDRESS: 'http://10.0.0.1:8080/',
  DATABASE_URL: 'postgres://db.test/berth',
  BERTH_MASTER_KEY: 'the-same-for-every-server',
  BERTH_BLOBS_FOLDER: '/mnt/blobs',
}

test('reads the address for other servers, and the shared settings', () => {
  const config = readConfig({}, shared)
  const flagged = readConfig({ serverAddress: 'https://one.test' }, { ...shared, BERTH_SERVER_ADDRESS: 'no' })

  assert.deepEqual([config.serverAddress, flagged.serverAddress], ['http://10.0.0.1:8080', 'https://one.test'])
  assert.deepEqual(config.blobs, { kind: 'folder', path: '/mnt/blobs' })
})

for (const [missing, named] of [
  ['DATABASE_URL', 'DATABASE_URL'],
  ['BERTH_MASTER_KEY', 'BERTH_MASTER_KEY'],
  ['BERTH_BLOBS_FOLDER', 'BERTH_BLOBS=s3'],
] as const) {
  test(`rejects a server address without ${missing}`, () => {
    const message = new RegExp(`^BERTH_SERVER_ADDRESS needs .*${named}`)
    assert.throws(() => readConfig({}, { ...shared, [missing]: undefined }), { name: 'StartError', message })
  })
}

for (const [flags, environment, named] of [
  [{}, { ...shared, BERTH_SERVER_ADDRESS: '10.0.0.1:8080' }, 'BERTH_SERVER_ADDRESS'],
  [{}, { ...shared, BERTH_SERVER_ADDRESS: 'http://10.0.0.1:8080/berth' }, 'BERTH_SERVER_ADDRESS'],
  [{}, { BERTH_BLOBS: 's3', BERTH_S3_BUCKET: 'blobs', BERTH_BLOBS_FOLDER: '/mnt' }, 'BERTH_BLOBS_FOLDER'],
  [{ port: '65536' }, {}, '--port'],
  [{ port: '' }, {}, '--port'],
  [{ logLevel: 'loud' }, {}, 'log-level'],
  [{}, { BERTH_JSON: 'maybe' }, 'BERTH_JSON'],
  [{}, { BERTH_REGION: 'mars' }, 'BERTH_REGION'],
  [{}, { BERTH_DRIVER: 'mainframe' }, 'BERTH_DRIVER must be one of local, kubernetes'],
  [{}, { BERTH_API_KEY: 'short' }, 'BERTH_API_KEY'],
  [{}, { BERTH_API_KEY: 'with a space in the middle' }, 'BERTH_API_KEY'],
  [{}, { BERTH_MASTER_KEY: 'short' }, 'BERTH_MASTER_KEY'],
  [{}, { BERTH_PUBLIC_URL: 'ftp://x' }, 'BERTH_PUBLIC_URL'],
  [{}, { BERTH_PUBLIC_URL: 'https://x?y' }, 'BERTH_PUBLIC_URL'],
  [{}, { DATABASE_URL: 'mysql://x' }, 'DATABASE_URL'],
  [{}, { BERTH_EGRESS_ALLOW: '10.0.0.0/99' }, 'BERTH_EGRESS_ALLOW'],
  [{}, { BERTH_PROXY_POOLS: '/nowhere/pools.json' }, 'BERTH_PROXY_POOLS'],
  [{}, { BERTH_STEALTH_PROXY: 'proxy.test:3128' }, 'BERTH_STEALTH_PROXY'],
  [{}, { BERTH_PROXY_CHECK_URL: 'echo.test' }, 'BERTH_PROXY_CHECK_URL'],
  [{}, { BERTH_BLOBS: 'ftp' }, 'BERTH_BLOBS'],
  [{}, { BERTH_BLOBS: 's3' }, 'BERTH_S3_BUCKET'],
  [{}, { BERTH_BLOBS: 's3', BERTH_S3_BUCKET: 'No_Bucket' }, 'BERTH_S3_BUCKET'],
  [{}, { BERTH_BLOBS: 's3', BERTH_S3_BUCKET: 'blobs', BERTH_S3_ENDPOINT: 'minio:9000' }, 'BERTH_S3_ENDPOINT'],
  [{}, { BERTH_BLOBS: 's3', BERTH_S3_BUCKET: 'blobs', BERTH_S3_PATH_STYLE: '?' }, 'BERTH_S3_PATH_STYLE'],
  [{}, { BERTH_BLOBS: 's3', BERTH_S3_BUCKET: 'blobs', BERTH_S3_PREFIX: 'a b' }, 'BERTH_S3_PREFIX'],
  [{}, { BERTH_S3_BUCKET: 'blobs' }, 'BERTH_BLOBS'],
  [{}, { BERTH_STANDBY: 'sometimes' }, 'BERTH_STANDBY'],
  [{}, { BERTH_RESERVE: 'headless' }, 'BERTH_RESERVE'],
  [{}, { BERTH_RESERVE: 'gpu=1' }, 'BERTH_RESERVE'],
] as const) {
  test(`names ${named} in the message for ${JSON.stringify({ ...flags, ...environment })}`, () => {
    assert.throws(() => readConfig(flags, environment), { name: 'StartError', message: new RegExp(named) })
  })
}
