import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { toFile } from '@onkernel/sdk'
import { ZipFile } from 'yazl'
import { deepOnly } from './fault/testing/deep.ts'
import { until } from './fault/testing/until.ts'
import { Berth, createRouted } from './testing/berth.ts'
import { createCheckedFetch } from './testing/checked-fetch.ts'
import { hostMachinesOnly } from './testing/cluster-environment.ts'
import { agentProcess, memoryMiB } from './testing/processes.ts'

const mebibyte = 1024 * 1024
const linkMode = 0o120777
const berth = await Berth.borrow()
after(() => berth[Symbol.asyncDispose]())
const client = await berth.client()
const session = await client.browsers.create({ headless: true, timeout_seconds: 600 })
const id = session.session_id
const { fs } = client.browsers
const checkedFetch = await createCheckedFetch(berth.url)

function zip(members: Readonly<Record<string, string>>, links: Readonly<Record<string, string>> = {}): Promise<Buffer> {
  const archive = new ZipFile()
  for (const [name, content] of Object.entries(members)) archive.addBuffer(Buffer.from(content), name)
  for (const [name, leadsTo] of Object.entries(links)) {
    archive.addBuffer(Buffer.from(leadsTo), name, { mode: linkMode, compress: false })
  }
  archive.end()
  return buffer(archive.outputStream)
}

/** Replaces a name by one of the same length that no library would write. */
function renamed(archive: Buffer, from: string, to: string): Buffer {
  return Buffer.from(archive.toString('latin1').replaceAll(from, to), 'latin1')
}

async function readText(path: string): Promise<string> {
  return (await fs.readFile(id, { path })).text()
}

async function names(path: string): Promise<readonly string[]> {
  return (await fs.listFiles(id, { path })).map(({ name }) => name)
}

for (const subresources of ['', 'fs'] as const) {
  const form = subresources === 'fs' ? 'directly' : 'by the API'

  test(`the official client does everything with files ${form}`, async () => {
    const addresses: string[] = []
    const caller = createRouted(subresources, {
      apiKey: berth.apiKey,
      baseURL: berth.url,
      maxRetries: 0,
      fetch: (input, init) => {
        addresses.push(String(input))
        return checkedFetch(input, init)
      },
    })
    await caller.browsers.retrieve(id)
    const home = `/home/kernel/work-${subresources}`

    await caller.browsers.fs.createDirectory(id, { path: `${home}/empty`, mode: '700' })
    await caller.browsers.fs.writeFile(id, Buffer.from([0, 1, 255]), { path: `${home}/a/b.bin`, mode: '600' })
    const read = await caller.browsers.fs.readFile(id, { path: `${home}/a/b.bin` })
    assert.deepEqual(Buffer.from(await read.arrayBuffer()), Buffer.from([0, 1, 255]))
    assert.deepEqual(
      (await caller.browsers.fs.listFiles(id, { path: home })).map(({ name, mode, is_dir }) => [name, mode, is_dir]),
      [
        ['a', 'drwxr-xr-x', true],
        ['empty', 'drwx------', true],
      ],
    )
    assert.deepEqual(await caller.browsers.fs.listFiles(id, { path: `${home}/empty` }), [])
    await caller.browsers.fs.setFilePermissions(id, {
      path: `${home}/a/b.bin`,
      mode: '0755',
      owner: 'kernel',
      group: 'root',
    })
    const { mod_time, ...info } = await caller.browsers.fs.fileInfo(id, { path: `${home}/a/b.bin` })
    assert.deepEqual(info, {
      name: 'b.bin',
      path: `${home}/a/b.bin`,
      size_bytes: 3,
      is_dir: false,
      mode: '-rwxr-xr-x',
    })
    assert.ok(Math.abs(Date.parse(mod_time) - Date.now()) < 60_000)

    const { watch_id } = await caller.browsers.fs.watch.start(id, { path: home, recursive: true })
    const events = await caller.browsers.fs.watch.events(watch_id as string, { id })
    await caller.browsers.fs.move(id, { src_path: `${home}/a/b.bin`, dest_path: `${home}/c.bin` })
    const seen: string[] = []
    for await (const { type, path } of events) {
      seen.push(`${type} ${path}`)
      if (seen.length === 2) await caller.browsers.fs.watch.stop(watch_id as string, { id })
    }
    assert.deepEqual(seen, [`RENAME ${home}/a/b.bin`, `CREATE ${home}/c.bin`])
    await assert.rejects(caller.browsers.fs.watch.events(watch_id as string, { id }), { status: 404 })

    await caller.browsers.fs.upload(id, {
      files: [
        { dest_path: `${home}/up/1`, file: await toFile(Buffer.from('one'), 'x') },
        { dest_path: `${home}/up/2`, file: await toFile(Buffer.from('two'), 'x') },
      ],
    })
    const archive = await buffer(
      Readable.fromWeb((await caller.browsers.fs.downloadDirZip(id, { path: `${home}/up` })).body as never),
    )
    await caller.browsers.fs.uploadZip(id, { dest_path: `${home}/copy`, zip_file: await toFile(archive, 'a.zip') })
    assert.equal(await readText(`${home}/copy/2`), 'two')
    await caller.browsers.fs.deleteFile(id, { path: `${home}/c.bin` })
    await caller.browsers.fs.deleteDirectory(id, { path: home })
    await assert.rejects(caller.browsers.fs.fileInfo(id, { path: home }), { status: 404 })

    const isDirect = (address: string) =>
      address === 'data:,' || // The client uses this to detect support for forms.
      address.startsWith(`${berth.url}/s/${id}/fs/`)
    assert.equal(addresses.slice(1).every(isDirect), subresources === 'fs', addresses.join('\n'))
  })
}

test("files belong to the session's user, and others stay inaccessible", async () => {
  await fs.writeFile(id, 'x', { path: '/tmp/locked/file', mode: '000' })
  const statusOf = async (call: Promise<unknown>) => (await call.then(() => 0).catch((error) => error.status)) as number

  await assert.rejects(fs.readFile(id, { path: '/tmp/locked/file' }), { status: 403 })
  await assert.rejects(fs.writeFile(id, 'y', { path: '/tmp/locked/file' }), { status: 403 })
  await assert.rejects(fs.downloadDirZip(id, { path: '/tmp/locked' }), /403 path: .* may not read "file"/)
  for (const path of ['/etc/passwd', '/usr/new', '/opt/berth/agent.json', '/new', '/proc/new']) {
    assert.equal(await statusOf(fs.writeFile(id, 'y', { path })), 403, path)
  }
  for (const path of ['/home/kernel', '/tmp', '/', '/etc', '/dev/shm']) {
    assert.equal(await statusOf(fs.deleteDirectory(id, { path })), 403, path)
  }
  assert.ok((await names('/home/kernel')).includes('Downloads'), 'nothing was deleted before the refusal')
  await fs.setFilePermissions(id, { path: '/tmp/locked/file', mode: '644' })
  assert.equal(await readText('/tmp/locked/file'), 'x')
  const { mode } = await fs.fileInfo(id, { path: '/home/kernel/Downloads' })
  assert.match(mode, /^d/)
})

test('a large upload that is refused gets its response', async () => {
  for (const operation of ['write_file?path=/etc/new', 'write_file?path=relative']) {
    const answer = await put(`/browsers/${id}/fs/${operation}`, repeated(Buffer.alloc(mebibyte), 40 * mebibyte))
    assert.match(`${answer.status} ${await answer.text()}`, /^40[03] .*path: /)
  }
})

test('a file moves between the file systems of a session', async () => {
  await fs.writeFile(id, 'x', { path: '/tmp/move/a/file', mode: '750' })

  await fs.move(id, { src_path: '/tmp/move/a', dest_path: '/home/kernel/moved' })
  await fs.move(id, { src_path: '/home/kernel/moved/file', dest_path: '/dev/shm/file' })

  assert.equal((await fs.fileInfo(id, { path: '/dev/shm/file' })).mode, '-rwxr-x---')
  assert.deepEqual(await names('/tmp/move'), [])
})

test('ranges and conditional requests are forwarded', async () => {
  await fs.writeFile(id, '0123456789', { path: '/tmp/ranged' })
  const ask = (headers: Record<string, string>) =>
    berth.request(`/browsers/${id}/fs/read_file?path=/tmp/ranged`, { headers })

  const part = await ask({ range: 'bytes=2-4' })
  assert.deepEqual([part.status, await part.text()], [206, '234'])
  assert.equal(part.headers.get('content-range'), 'bytes 2-4/10')
  assert.equal(part.headers.get('accept-ranges'), 'bytes')
  const beyond = await ask({ range: 'bytes=20-' })
  assert.deepEqual([beyond.status, beyond.headers.get('content-range')], [416, 'bytes */10'])
  const etag = part.headers.get('etag') as string
  assert.equal((await ask({ 'if-none-match': etag })).status, 304)
  assert.equal((await ask({ range: 'bytes=2-4', 'if-range': '"x"' })).status, 200)
})

test('hostile archives leave nothing, and a valid one downloads unchanged (case 23)', async () => {
  await fs.createDirectory(id, { path: '/tmp/z' })
  await fs.uploadZip(id, { dest_path: '/tmp/z', zip_file: await toFile(await zip({ a: '' }, { there: 'a' }), 'z') })
  const before = await names('/tmp')
  const escaping = await zip({ ok: 'x', 'xx/escape.txt': 'x' })
  const twice = renamed(await zip({ one: 'x', two: 'y' }), 'two', 'one')
  const hostile: Readonly<Record<string, Buffer>> = {
    'a way up': renamed(escaping, 'xx/escape.txt', '../escape.txt'),
    'an absolute entry': renamed(escaping, 'xx/escape.txt', '//escape.txtx'),
    'a link outside and an entry below': renamed(await zip({ 'm/x': 'x' }, { l: '/etc' }), 'm/x', 'l/x'),
    'a link outside': await zip({ ok: 'x' }, { l: '../../outside' }),
    'an entry below a link that is there': await zip({ 'there/x': 'x' }),
    'one name twice': twice,
    truncated: escaping.subarray(0, -30),
    'no archive': randomBytes(1000),
    'an empty archive': await zip({}),
  }

  for (const [what, archive] of Object.entries(hostile)) {
    const sent = fs.uploadZip(id, { dest_path: '/tmp/z', zip_file: await toFile(archive, 'z.zip') })
    await assert.rejects(sent, { status: 400 }, what)
    assert.deepEqual(await names('/tmp/z'), ['a', 'there'], what)
    assert.deepEqual(await names('/tmp'), before, what)
  }
  const good = await zip({ a: 'content', 'sub/c': 'c' }, { b: 'a' })
  await fs.uploadZip(id, { dest_path: '/tmp/good', zip_file: await toFile(good, 'z.zip') })
  const again = await (await fs.downloadDirZip(id, { path: '/tmp/good' })).arrayBuffer()
  await fs.uploadZip(id, { dest_path: '/tmp/again', zip_file: await toFile(again, 'z.zip') })
  for (const folder of ['/tmp/good', '/tmp/again']) {
    assert.equal(await readText(`${folder}/b`), 'content')
    assert.match(String((await fs.listFiles(id, { path: folder }))[1]?.mode), /^l/)
  }
})

test('sessions have separate files and watches (case 26)', async () => {
  await fs.writeFile(id, 'secret', { path: '/tmp/a-secret.txt' })
  const { watch_id } = await fs.watch.start(id, { path: '/tmp' })
  const other = await client.browsers.create({ headless: true })

  await assert.rejects(fs.readFile(other.session_id, { path: '/tmp/a-secret.txt' }), { status: 404 })
  for (const path of ['/tmp', '/home/kernel', '/dev/shm']) {
    const listed = JSON.stringify(await fs.listFiles(other.session_id, { path }))
    assert.doesNotMatch(listed, /a-secret|ranged|again/)
  }
  await assert.rejects(fs.watch.events(watch_id as string, { id: other.session_id }), { status: 404 })
  await assert.rejects(fs.watch.stop(watch_id as string, { id: other.session_id }), { status: 404 })
  await client.browsers.deleteByID(other.session_id)

  assert.equal(await readText('/tmp/a-secret.txt'), 'secret')
  await fs.watch.stop(watch_id as string, { id })
})

test('an incomplete upload leaves the old file', async () => {
  await fs.writeFile(id, 'old', { path: '/tmp/broken/file' })
  const { hostname, port } = new URL(berth.url)
  const socket = connect(Number(port), hostname)
  const { watch_id } = await fs.watch.start(id, { path: '/tmp/broken' })

  socket.write(
    `PUT /browsers/${id}/fs/write_file?path=/tmp/broken/file HTTP/1.1\r\nhost: x\r\n` +
      `authorization: Bearer ${berth.apiKey}\r\ncontent-length: 1000000\r\n\r\n${'x'.repeat(100_000)}`,
  )
  await until('the upload', async () => (await names('/tmp/broken')).length === 2, { limitSeconds: 30 })
  socket.resetAndDestroy()
  await until('its removal', async () => (await names('/tmp/broken')).length === 1, { limitSeconds: 30 })

  assert.equal(await readText('/tmp/broken/file'), 'old')
  await fs.writeFile(id, 'new', { path: '/tmp/broken/file' })
  for await (const { type, path } of await fs.watch.events(watch_id as string, { id })) {
    assert.deepEqual([type, path], ['WRITE', '/tmp/broken/file'], 'what came to nothing is not told')
    break
  }
})

test('256 MiB are transferred in both directions with flat memory', hostMachinesOnly, () => passes(256 * mebibyte))
test('2 GiB are transferred in both directions with flat memory', deepOnly, () => passes(2048 * mebibyte))

async function passes(size: number): Promise<void> {
  const block = randomBytes(mebibyte)
  const expected = createHash('sha256')
  for (const chunk of repeated(block, size)) expected.update(chunk)
  const processes = [berth.pid, await agentProcess(id)]
  const before = await memoryMiB(processes)
  let most = before
  const watching = setInterval(async () => {
    most = Math.max(most, await memoryMiB(processes))
  }, 100)

  const written = await put(`/browsers/${id}/fs/write_file?path=/home/kernel/large`, repeated(block, size))
  assert.equal(written.status, 201, await written.text())
  const read = await berth.request(`/browsers/${id}/fs/read_file?path=/home/kernel/large`)
  assert.equal(read.headers.get('content-length'), String(size))
  const found = createHash('sha256')
  for await (const chunk of read.body as ReadableStream<Uint8Array>) found.update(chunk)
  clearInterval(watching)

  assert.equal(found.digest('hex'), expected.digest('hex'))
  // Node.js frees buffers read from sockets only at 64 MiB, in each of the two processes, whatever their size.
  assert.ok(most - before < 200, `grew by ${Math.round(most - before)} MiB`)
  await fs.deleteFile(id, { path: '/home/kernel/large' })
}

/** Sends a body without a length. */
function put(path: string, body: Iterable<Buffer>): Promise<Response> {
  return berth.request(path, {
    method: 'PUT',
    body: Readable.toWeb(Readable.from(body)) as never,
    duplex: 'half',
  } as RequestInit)
}

function* repeated(block: Buffer, size: number): Generator<Buffer> {
  for (let sent = 0; sent < size; sent += block.length) yield block
}
