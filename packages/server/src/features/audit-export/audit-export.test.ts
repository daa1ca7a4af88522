import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import type { ExportDestination } from '@berth/contract/audit/export-destination-endpoints.ts'
import type { ProjectId } from '@berth/contract/common/ids.ts'
import { newApiKey } from '../../access/secrets.ts'
import { type TestProject, TestServer } from '../../testing/server-test.ts'
import { S3Server } from '../../testing/services/s3-server.ts'

const s3 = await S3Server.open()
const { bucket, endpoint, region } = await s3.bucket()
const server = await TestServer.open({ auditExport: { buckets: [bucket, 'missing-bucket'], endpoint } })
const client = new S3Client({ region, endpoint: String(endpoint), forcePathStyle: true })
after(async () => {
  client.destroy()
  await server.close()
  await s3.close()
})

interface Failure {
  readonly code: string
  readonly message: string
}

const place = { type: 's3', format: 'jsonl.gz', region, bucket, prefix: 'logs', role_arn: 'arn:aws:iam::1:role/berth' }

async function create(owner: TestProject, body: object = {}): Promise<ExportDestination> {
  const answer = await owner.call<ExportDestination>('POST', '/audit-logs/export/destinations', { ...place, ...body })
  assert.equal(answer.status, 201, JSON.stringify(answer.body))
  return answer.body
}

const change = async (owner: TestProject, { id }: ExportDestination, body: object) =>
  (await owner.call<ExportDestination>('PATCH', `/audit-logs/export/destinations/${id}`, body)).body

const read = async (owner: TestProject, { id }: ExportDestination) =>
  (await owner.call<ExportDestination>('GET', `/audit-logs/export/destinations/${id}`)).body

/** Moves the clock past the export windows and exports. */
async function exportAll(): Promise<void> {
  await server.services.audit.flush()
  server.clock.advance(20 * 60)
  await server.services.auditExporter.run()
}

/** The lines of a destination in the bucket, by object key. */
async function objects(destination: ExportDestination): Promise<ReadonlyMap<string, readonly Line[]>> {
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: destination.bucket }))
  const keys = Contents.flatMap(({ Key }) => (Key?.includes(`destination_id=${destination.id}/`) ? [Key] : []))
  const contents = keys.map(async (key): Promise<[string, Line[]]> => {
    const { Body, ContentType } = await client.send(new GetObjectCommand({ Bucket: destination.bucket, Key: key }))
    assert.equal(ContentType, 'application/gzip')
    const text = gunzipSync((await Body?.transformToByteArray()) ?? new Uint8Array()).toString()
    return [
      key,
      text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ]
  })
  return new Map(await Promise.all(contents))
}

interface Line {
  readonly event_id: string
  readonly path: string
}

const linesOf = async (destination: ExportDestination) => [...(await objects(destination)).values()].flat()
/** Paths of requests other than those about destinations. */
const pathsOf = async (destination: ExportDestination) =>
  (await linesOf(destination)).map(({ path }) => path).filter((path) => path.startsWith('/profiles'))

test('a destination is created paused, read, listed, changed and deleted', async () => {
  const owner = await server.project()

  const made = await create(owner, { kms_key_id: 'alias/audit' })
  assert.deepEqual(
    [made.status, made.consecutive_failures, made.kms_key_id, made.last_exported_cursor, made.role_arn],
    ['paused', 0, 'alias/audit', undefined, place.role_arn],
  )
  assert.match(made.external_id, /^[0-9a-f-]{36}$/)
  assert.equal((await change(owner, made, { kms_key_id: null, prefix: '' })).kms_key_id, 'alias/audit')
  const changed = await change(owner, made, { kms_key_id: '' })
  assert.deepEqual([changed.kms_key_id, changed.prefix], [undefined, ''])
  assert.deepEqual(await read(owner, made), changed)
  assert.deepEqual((await owner.call('GET', '/audit-logs/export/destinations')).body, [changed])

  assert.equal((await owner.call('DELETE', `/audit-logs/export/destinations/${made.id}`)).status, 204)
  for (const [method, path, body] of [
    ['GET', `/audit-logs/export/destinations/${made.id}`],
    ['PATCH', `/audit-logs/export/destinations/${made.id}`, {}],
    ['DELETE', `/audit-logs/export/destinations/${made.id}`],
    ['POST', `/audit-logs/export/destinations/${made.id}/test`],
  ] as const) {
    const gone = await owner.call<Failure>(method, path, body)
    assert.deepEqual([gone.status, gone.body.code], [404, 'export_destination_not_found'], method)
  }
})

test('a bucket that the operator does not permit is rejected, and so are invalid values', async () => {
  const owner = await server.project()
  const made = await create(owner)

  for (const [field, body] of [
    ['bucket', { bucket: 'somebody-elses' }],
    ['bucket', { bucket: '../x' }],
    ['region', { region: 'US EAST' }],
    ['prefix', { prefix: 'a/../b' }],
    ['prefix', { prefix: 'a b' }],
  ] as const) {
    for (const [method, path] of [
      ['POST', '/audit-logs/export/destinations'],
      ['PATCH', `/audit-logs/export/destinations/${made.id}`],
    ] as const) {
      const refused = await owner.call<Failure>(method, path, { ...(method === 'POST' && place), ...body })
      assert.deepEqual([refused.status, refused.body.message.split(':')[0]], [400, field])
    }
  }
  assert.equal(
    (await owner.call('PATCH', `/audit-logs/export/destinations/${made.id}`, { status: 'stopped' })).status,
    400,
  )
})

test('a key of one project is rejected', async () => {
  const owner = await server.project()
  const made = await create(owner)
  const key = newApiKey()
  await owner.addKey(key, owner.id as ProjectId)

  for (const [method, path, body] of [
    ['POST', '/audit-logs/export/destinations', place],
    ['GET', '/audit-logs/export/destinations'],
    ['GET', `/audit-logs/export/destinations/${made.id}`],
    ['PATCH', `/audit-logs/export/destinations/${made.id}`, {}],
    ['DELETE', `/audit-logs/export/destinations/${made.id}`],
    ['POST', `/audit-logs/export/destinations/${made.id}/test`],
  ] as const) {
    assert.equal((await owner.call(method, path, body, { key })).status, 403, `${method} ${path}`)
  }
})

test('a test writes an object and removes it, or says why it cannot', async () => {
  const owner = await server.project()
  const made = await create(owner)
  const tested = async () => (await owner.call<object>('POST', `/audit-logs/export/destinations/${made.id}/test`)).body

  assert.deepEqual(await tested(), { success: true, stage: 'complete' })
  const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: bucket }))
  assert.ok(!Contents.some(({ Key }) => Key?.includes('export-test')))
  await change(owner, made, { bucket: 'missing-bucket' })
  assert.deepEqual(await tested(), {
    success: false,
    stage: 'put_object',
    error: { code: 'put_object_failed', message: 'S3 answers NoSuchBucket with the status 404.' },
  })
})

test('events after the activation are exported after their window, below their hour', async () => {
  const owner = await server.project()
  const stranger = await server.project()
  const made = await create(owner)
  await owner.call('POST', '/profiles', { name: 'before' })
  await change(owner, made, { status: 'active' })
  for (const name of ['one', 'two']) await owner.call('DELETE', `/profiles/${name}`)
  await stranger.call('DELETE', '/profiles/theirs')
  await server.services.audit.flush()
  await server.services.auditExporter.run()
  assert.deepEqual(await pathsOf(made), [], 'not before its window is over')
  const time = server.clock.now().toISOString()

  await exportAll()

  assert.deepEqual((await pathsOf(made)).toSorted(), ['/profiles/one', '/profiles/two'])
  for (const key of (await objects(made)).keys()) {
    const folder = `logs/destination_id=${made.id}/org_id=${owner.organizationId}/date=${time.slice(0, 10)}`
    assert.ok(key.startsWith(`${folder}/hour=${time.slice(11, 13)}/`), key)
  }
  const { last_exported_cursor, last_success_at } = await read(owner, made)
  assert.ok(Number(last_exported_cursor) > 0)
  assert.equal(last_success_at, server.clock.now().toISOString())
})

test('a paused destination continues where it was, without duplicates', async () => {
  const owner = await server.project()
  const made = await create(owner)
  await change(owner, made, { status: 'active' })
  await owner.call('DELETE', '/profiles/one')
  await exportAll()
  await change(owner, made, { status: 'paused' })
  await owner.call('DELETE', '/profiles/two')
  await exportAll()
  assert.deepEqual(await pathsOf(made), ['/profiles/one'])

  await change(owner, made, { status: 'active' })
  await exportAll()

  const lines = await linesOf(made)
  assert.equal(new Set(lines.map(({ event_id }) => event_id)).size, lines.length)
  assert.deepEqual((await pathsOf(made)).toSorted(), ['/profiles/one', '/profiles/two'])
})

test('a failure is reported and retried with growing pauses, and loses nothing', async () => {
  const owner = await server.project()
  const made = await create(owner)
  await change(owner, made, { status: 'active', bucket: 'missing-bucket' })
  await owner.call('DELETE', '/profiles/one')
  await exportAll()

  const first = await read(owner, made)
  assert.deepEqual([first.consecutive_failures, first.last_error], [1, 'S3 answers NoSuchBucket with the status 404.'])
  assert.equal(Date.parse(first.next_attempt_at ?? '') - server.clock.now().getTime(), 60_000)
  await server.services.auditExporter.run()
  assert.equal((await read(owner, made)).consecutive_failures, 1, 'it is not tried before its time')
  server.clock.advance(60)
  await server.services.auditExporter.run()
  const second = await read(owner, made)
  assert.equal(Date.parse(second.next_attempt_at ?? '') - server.clock.now().getTime(), 120_000)

  await change(owner, made, { bucket })
  await exportAll()

  const well = await read(owner, made)
  assert.deepEqual([well.consecutive_failures, well.last_error, well.next_attempt_at], [0, undefined, undefined])
  assert.deepEqual(await pathsOf(made), ['/profiles/one'])
})

test('an export that is interrupted before it is recorded is repeated with the same events', async () => {
  const owner = await server.project()
  const made = await create(owner)
  await change(owner, made, { status: 'active' })
  for (const name of ['one', 'two', 'three']) {
    await owner.call('DELETE', `/profiles/${name}`)
    server.clock.advance(15 * 60)
  }
  const { last_exported_cursor } = await read(owner, made)
  await exportAll()
  await server.database
    .updateTable('audit_export_destinations')
    .set({ exported_sequence: Number(last_exported_cursor) })
    .where('id', '=', made.id as never)
    .execute()

  await exportAll()

  const lines = await linesOf(made)
  assert.equal(new Set(lines.map(({ event_id }) => event_id)).size, lines.length, 'the same objects are written over')
  assert.deepEqual((await pathsOf(made)).toSorted(), ['/profiles/one', '/profiles/three', '/profiles/two'])
})

test('a failing destination delays no other, and a deleted one ends', async () => {
  const owner = await server.project()
  const [bad, good] = [await create(owner), await create(owner)]
  await change(owner, bad, { status: 'active', bucket: 'missing-bucket' })
  await change(owner, good, { status: 'active' })
  await owner.call('DELETE', '/profiles/one')

  await exportAll()

  assert.equal((await read(owner, bad)).consecutive_failures, 1)
  assert.deepEqual(await pathsOf(good), ['/profiles/one'])
  await Promise.all([exportAll(), owner.call('DELETE', `/audit-logs/export/destinations/${good.id}`)])
  assert.equal((await owner.call('GET', `/audit-logs/export/destinations/${good.id}`)).status, 404)
})
