import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { S3Server } from '../testing/services/s3-server.ts'
import { blobSuite, pieces } from './blob-suite.ts'
import { openBlobs } from './open-blobs.ts'
import { S3Blobs } from './s3-blobs.ts'

const server = await S3Server.open()
after(() => server.close())
const settings = await server.bucket()

await blobSuite('S3', async () => {
  const blobs = await S3Blobs.open(settings)
  return { blobs, close: async () => blobs.close() }
})

test('an incomplete large write leaves no parts', async () => {
  const blobs = await S3Blobs.open(settings)

  await assert.rejects(blobs.write('parts-1', pieces(randomBytes(17 * 1024 ** 2), new Error('left'))), /left/)

  assert.ok(!server.uploads.some(({ key }) => key.endsWith('parts-1')))
  blobs.close()
})

test('parts of a crashed upload are removed when they are old enough, and others stay', async () => {
  const blobs = await S3Blobs.open(settings)
  const never = Promise.withResolvers<never>()
  const isUnderWay = (name: string) => server.uploads.some(({ key }) => key.endsWith(name))
  const writes = ['crash-1', 'crash-2'].map((name) =>
    blobs.write(
      name,
      (async function* () {
        yield randomBytes(9 * 1024 ** 2)
        yield await never.promise
      })(),
    ),
  )
  while (!isUnderWay('crash-1') || !isUnderWay('crash-2')) await delay(5)
  for (const upload of server.uploads) if (upload.key.endsWith('crash-1')) upload.initiated = new Date(0)

  await blobs.removeUnfinished(new Date(Date.now() - 60_000))

  assert.ok(!isUnderWay('crash-1'))
  assert.ok(isUnderWay('crash-2'))
  never.reject(new Error('the end of the test'))
  await Promise.allSettled(writes)
  blobs.close()
})

test('keys have the prefix, and other objects in the bucket are not listed', async () => {
  const [one, other] = await Promise.all([S3Blobs.open(settings), S3Blobs.open({ ...settings, prefix: 'other/' })])
  await one.write('same-name', pieces('one'))
  await other.write('same-name', pieces('other'))

  assert.equal(await text(await one.read('same-name')), 'one')
  assert.deepEqual(await Array.fromAsync(other.list({ before: new Date(Date.now() + 60_000) })), ['same-name'])
  one.close()
  other.close()
})

test('a listing continues beyond the first page', async () => {
  const blobs = await S3Blobs.open(settings)
  const names = Array.from({ length: 25 }, (_value, index) => `many-${index}`)
  for (const name of names) await blobs.write(name, pieces('x'))
  server.maxListed = 10

  const listed = await Array.fromAsync(blobs.list({ prefix: 'many-', before: new Date(Date.now() + 60_000) }))

  server.maxListed = 1_000
  assert.deepEqual(listed.toSorted(), names.toSorted())
  blobs.close()
})

for (const [kind, changed, credentials, reason] of [
  [
    'a bucket that is not there',
    { bucket: 'no-such-bucket' },
    {},
    /no-such-bucket of BERTH_S3_BUCKET .*no such bucket/,
  ],
  ['a key that is not known', {}, { AWS_ACCESS_KEY_ID: 'somebody-else' }, /AWS_ACCESS_KEY_ID.* may not use it/],
  ['a server that is not there', { endpoint: 'http://127.0.0.1:9' }, {}, /cannot be used: .*ECONNREFUSED/],
] as const) {
  test(`${kind} prevents berth from starting, and is named`, async () => {
    const known = { ...process.env }
    Object.assign(process.env, credentials)

    const opening = openBlobs({ kind: 's3', ...settings, ...changed }, 'unused')

    await assert.rejects(opening, { name: 'StartError', exitCode: 69, message: reason })
    Object.assign(process.env, known)
  })
}
