import assert from 'node:assert/strict'
import { once } from 'node:events'
import { access, mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { startFauxqs } from 'fauxqs'
import { Berth, launch } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'

const s3 = await startFauxqs({ port: 0, host: '127.0.0.1', logger: false })
after(() => s3.stop())
s3.createBucket('berth-e2e')
const environment = {
  BERTH_BLOBS: 's3',
  BERTH_S3_BUCKET: 'berth-e2e',
  BERTH_S3_ENDPOINT: `http://127.0.0.1:${s3.port}`,
  AWS_ACCESS_KEY_ID: 'key',
  AWS_SECRET_ACCESS_KEY: 'secret',
}

test('a profile is stored in a bucket, and a session starts with it', async () => {
  await using berth = await Berth.start({ environment })
  const client = await berth.client()
  const profile = { name: 'kept-elsewhere', save_changes: true }
  await client.profiles.create({ name: profile.name })
  const cookie = { name: 'kept', value: 'yes', domain: 'site.test', path: '/', expires: 4e9 }

  const first = await client.browsers.create({ headless: true, profile })
  const cdp = await CdpClient.open(first.cdp_ws_url)
  await cdp.send('Storage.setCookies', { cookies: [cookie] })
  await client.browsers.deleteByID(first.session_id)
  const second = await client.browsers.create({ headless: true, profile })
  const { cookies } = await (await CdpClient.open(second.cdp_ws_url)).send('Storage.getCookies')

  assert.deepEqual(
    (cookies as (typeof cookie)[]).map(({ name, value }) => [name, value]),
    [['kept', 'yes']],
  )
  await assert.rejects(access(join(berth.dataFolder, 'blobs')), { code: 'ENOENT' })
})

test('a missing bucket prints one line and sets an exit code', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'berth-blobs-'))
  const child = launch(['serve', '--port', '0', '--data-dir', folder.path], {
    ...environment,
    BERTH_S3_BUCKET: 'nowhere',
  })

  const [errors, [code]] = await Promise.all([
    text(child.stderr as NodeJS.ReadableStream as never),
    once(child, 'exit'),
  ])

  assert.equal(code, 69)
  assert.match(errors, /the bucket nowhere of BERTH_S3_BUCKET cannot be used: there is no such bucket\n$/)
})
