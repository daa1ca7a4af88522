import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Extension } from '@berth/contract/extensions/extension.ts'
import { linkMode, type ZipMember, zip } from '@berth/runtime/testing/zip.ts'
import { BlobNotFound } from '../../blobs/blobs.ts'
import { type ApiAnswer, type TestProject, TestServer } from '../../testing/server-test.ts'

let server: TestServer
before(async () => {
  server = await TestServer.open()
})
after(() => server.close())

const manifest: ZipMember = {
  name: 'manifest.json',
  content: JSON.stringify({ manifest_version: 3, name: 'test', version: '1.0' }),
}
const good = zip(manifest, { name: 'worker.js', content: 'console.log(1)' })

async function send<Body>(project: TestProject, path: string, form: FormData): Promise<ApiAnswer<Body>> {
  const headers = { authorization: `Bearer ${project.key}` }
  const response = await fetch(`${server.url}${path}`, { method: 'POST', headers, body: form })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    body: (text === '' ? undefined : JSON.parse(text)) as Body,
  }
}

function upload(project: TestProject, bytes: Uint8Array, name?: string) {
  const form = new FormData()
  form.set('file', new Blob([new Uint8Array(bytes)]), 'it.zip')
  if (name !== undefined) form.set('name', name)
  return send<Extension & { code?: string; message?: string }>(project, '/extensions', form)
}

function listBlobs(): Promise<readonly string[]> {
  return Array.fromAsync(server.services.blobs.list({ before: new Date(8.64e15) }))
}

async function download(project: TestProject, path: string): Promise<Response> {
  return fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${project.key}` } })
}

const incoming = () => readdir(join(server.host.folder, 'incoming'))

test('an extension downloads as it was uploaded, by id and by name', async () => {
  const project = await server.project()

  const { status, body } = await upload(project, good, 'blocker')

  const expected = {
    id: body.id,
    created_at: server.clock.now().toISOString(),
    size_bytes: good.length,
    name: 'blocker',
    checksum: createHash('sha256').update(good).digest('hex'),
    last_used_at: null,
  }
  assert.equal(status, 201)
  assert.deepEqual(body, expected)
  assert.match(body.id, /^ext[a-z0-9]{21}$/)
  for (const key of [body.id, 'blocker']) {
    assert.deepEqual((await project.call('GET', `/extensions/${key}/metadata`)).body, expected)
    const answer = await download(project, `/extensions/${key}`)
    assert.equal(answer.headers.get('content-type'), 'application/octet-stream')
    assert.deepEqual(Buffer.from(await answer.arrayBuffer()), good)
  }
  assert.deepEqual(await incoming(), [])
})

test('stored extensions are encrypted, and removed with the extension', async () => {
  const project = await server.project()
  const { body } = await upload(project, good)
  const { blob } = await server.database
    .selectFrom('extensions')
    .select('blob')
    .where('project_id', '=', project.id)
    .executeTakeFirstOrThrow()
  const stored = Buffer.concat(await Array.fromAsync(await server.services.blobs.read(blob)))
  assert.equal(stored.indexOf('manifest.json'), -1)

  const deletes = await Promise.all([1, 2].map(() => project.call('DELETE', `/extensions/${body.id}`)))

  assert.deepEqual(deletes.map(({ status }) => status).sort(), [204, 404])
  await assert.rejects(server.services.blobs.read(blob), BlobNotFound)
  assert.equal((await download(project, `/extensions/${body.id}`)).status, 404)
})

test('another project cannot see it', async () => {
  const [owner, other] = [await server.project(), await server.project()]
  const { body } = await upload(owner, good, 'mine')

  for (const key of [body.id, 'mine']) {
    assert.equal((await other.call('GET', `/extensions/${key}/metadata`)).status, 404)
    assert.equal((await download(other, `/extensions/${key}`)).status, 404)
    assert.equal((await other.call('DELETE', `/extensions/${key}`)).status, 404)
    const { status } = await other.call('POST', '/browsers', { headless: true, extensions: [{ name: 'mine' }] })
    assert.equal(status, 404)
  }
  assert.deepEqual((await other.call('GET', '/extensions')).body, [])
})

test('of twenty uploads with one name one succeeds, and the name is free after a delete', async () => {
  const project = await server.project()
  const blobsBefore = (await listBlobs()).length

  const answers = await Promise.all(Array.from({ length: 20 }, () => upload(project, good, 'same')))

  const [first, ...refused] = answers.sort((a, b) => a.status - b.status)
  assert.equal(first?.status, 201)
  for (const { status, body, headers } of refused) {
    assert.deepEqual([status, body.code, headers.get('x-should-retry')], [409, 'extension_name_taken', 'false'])
  }
  assert.equal((await listBlobs()).length, blobsBefore + 1)
  await project.call('DELETE', '/extensions/same')
  assert.equal((await upload(project, good, 'same')).status, 201)
})

test('lists newest first, page by page, and finds by name and id', async () => {
  const project = await server.project()
  const ids: string[] = []
  for (const name of ['Alpha', 'beta', 'alphabet']) {
    ids.unshift((await upload(project, good, name)).body.id)
    server.clock.advance(1)
  }
  const list = async (query: string) => {
    const { body, headers } = await project.call<Extension[]>('GET', `/extensions?${query}`)
    return { ids: body.map(({ id }) => id), next: headers.get('x-next-offset') }
  }

  assert.deepEqual(await list('limit=2'), { ids: ids.slice(0, 2), next: '2' })
  assert.deepEqual(await list('limit=2&offset=2'), { ids: ids.slice(2), next: '0' })
  assert.deepEqual((await list('query=LPHA')).ids, [ids[0], ids[2]])
  assert.deepEqual((await list(`query=${ids[1]}`)).ids, [ids[1]])
  assert.deepEqual((await list(`query=${ids[1]?.slice(0, 10)}`)).ids, [])
  assert.deepEqual((await list('name=%C3%81LPHA')).ids, [ids[2]])
  assert.deepEqual((await list('name=alph')).ids, [])
})

const zeros = Buffer.alloc(1024)
const hostile: [what: string, bytes: Buffer, reason: RegExp][] = [
  ['an entry that leads upwards', zip(manifest, { name: '../escape.txt' }), /relative path|leads out/],
  ['an absolute entry', zip(manifest, { name: '/tmp/escape.txt' }), /absolute path/],
  [
    'an entry below a link',
    zip(manifest, { name: 'l', content: '/etc', mode: linkMode }, { name: 'l/x' }),
    /below a link/,
  ],
  ['a link that leads out', zip(manifest, { name: 'l', content: '../../outside', mode: linkMode }), /leads out/],
  ['8 GiB of zeros', zip(manifest, { name: 'z', content: zeros, claimedSize: 0xffffffff - 1 }), /larger than/],
  ['two entries of one name', zip(manifest, manifest), /twice/],
  ['a truncated archive', good.subarray(0, -40), /./],
  ['an archive whose content is cut', Buffer.from(good).fill(0, 45, 60), /./],
  ['an empty archive', zip(), /no file/],
  ['no archive at all', Buffer.from('hello'), /./],
  ['nothing', Buffer.alloc(0), /./],
  ['no manifest', zip({ name: 'worker.js' }), /no manifest\.json/],
  [
    'a manifest in one of two folders',
    zip({ ...manifest, name: 'a/manifest.json' }, { name: 'b/x' }),
    /no manifest\.json/,
  ],
  ['a manifest that is no JSON', zip({ name: 'manifest.json', content: '{' }), /not JSON/],
  ['a manifest of another kind', zip({ name: 'manifest.json', content: '[]' }), /not an object/],
  [
    'a manifest without a version',
    zip({ name: 'manifest.json', content: '{"manifest_version":3,"name":"x"}' }),
    /version/,
  ],
]

test('hostile and malformed archives are rejected with the reason, and leave nothing', async () => {
  const project = await server.project()
  const { session_id } = await project.session()
  let sent = 0
  server.host.agentOf(session_id as never).takeExtensions = () => sent++
  const blobsBefore = (await listBlobs()).length

  for (const [what, bytes, reason] of hostile) {
    const { status, body } = await upload(project, bytes)
    assert.deepEqual([status, body.code], [400, 'archive_refused'], what)
    assert.match(body.message ?? '', reason, what)

    const form = new FormData()
    form.set('extensions[0][zip_file]', new Blob([new Uint8Array(bytes)]), 'it.zip')
    form.set('extensions[0][name]', 'it')
    const load = await send<{ code: string; message: string }>(project, `/browsers/${session_id}/extensions`, form)
    assert.deepEqual([load.status, load.body.code], [400, 'archive_refused'], what)
    assert.match(load.body.message, /^extensions\[0\]\.zip_file: /)
  }

  assert.equal(sent, 0, 'the machine has seen none of them')
  assert.deepEqual((await project.call('GET', '/extensions')).body, [])
  assert.equal((await listBlobs()).length, blobsBefore)
  assert.deepEqual(await incoming(), [])
})

test('accepts an extension in a single folder, as macOS packs it', async () => {
  const project = await server.project()

  const { status } = await upload(project, zip({ ...manifest, name: 'ext/manifest.json' }, { name: '__MACOSX/._ext' }))

  assert.equal(status, 201)
})

test('an upload with missing, unknown or invalid parts is rejected with the reason', async () => {
  const project = await server.project()
  const form = (parts: Record<string, string | Blob>) => {
    const made = new FormData()
    for (const [name, part] of Object.entries(parts)) made.set(name, part)
    return made
  }
  const file = new Blob([new Uint8Array(good)])

  for (const [parts, reason] of [
    [{ name: 'a' }, /^file: is missing/],
    [{ other: 'x' }, /^file: is missing/],
    [{ file, name: 'a/b' }, /^name: must have 1 to 255/],
    [{ file, name: '..' }, /^name: must have 1 to 255/],
    [{ file, name: 'x'.repeat(256) }, /^name: must have 1 to 255/],
  ] as [Record<string, string | Blob>, RegExp][]) {
    const { status, body } = await send<{ message: string }>(project, '/extensions', form(parts))
    assert.equal(status, 400)
    assert.match(body.message, reason)
  }
  const json = await project.call<{ code: string }>('POST', '/extensions', { name: 'a' })
  assert.deepEqual([json.status, json.body.code], [415, 'unsupported_media_type'])
  const large = await upload(project, Buffer.alloc(50 * 1024 * 1024 + 1))
  assert.deepEqual([large.status, large.body.code], [413, 'part_too_large'])
  assert.equal((await send(project, '/extensions', form({ file, other: 'x' }))).status, 201)
  assert.equal((await upload(project, good, '')).body.name, null)
  assert.deepEqual(await incoming(), [])
})
