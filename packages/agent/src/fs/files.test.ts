import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmod,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ServedApp } from '../testing/served-app.ts'

const app = await ServedApp.start()
after(() => app[Symbol.asyncDispose]())
const at = (path: string) => `path=${encodeURIComponent(path)}`
const read = (path: string, headers: Record<string, string> = {}) =>
  app.call('GET', `/fs/read_file?${at(path)}`, { headers })
const write = (path: string, body: string | null, query = '') =>
  app.call('PUT', `/fs/write_file?${at(path)}${query}`, { body })
const refusal = async (answer: Promise<Response>) => {
  const response = await answer
  return `${response.status} ${((await response.json()) as { message: string }).message}`
}

test('a written file is read back, and its parent folders are created', async () => {
  const path = join(await app.newFolder(), 'a b', 'ü', 'file')

  const written = await write(path, 'hello')
  const answer = await read(path)

  assert.equal(written.status, 201)
  assert.equal(await written.text(), '')
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('content-type'), 'application/octet-stream')
  assert.equal(answer.headers.get('content-length'), '5')
  assert.equal(answer.headers.get('accept-ranges'), 'bytes')
  assert.equal(await answer.text(), 'hello')
  assert.equal((await stat(path)).mode & 0o7777, 0o644)
})

test('an empty body writes an empty file, and replaces a longer one', async () => {
  const path = join(await app.newFolder(), 'file')
  await writeFile(path, 'old content')

  await write(path, null)

  assert.equal(await readFile(path, 'utf8'), '')
  assert.equal(await (await read(path)).text(), '')
})

test('a file keeps its mode unless another is given, and a link remains a link', async () => {
  const folder = await app.newFolder()
  await writeFile(join(folder, 'file'), 'old', { mode: 0o640 })
  await symlink('file', join(folder, 'link'))
  await symlink('later', join(folder, 'dangling'))

  await write(join(folder, 'link'), 'new')
  await write(join(folder, 'dangling'), 'new')
  await write(join(folder, 'run'), '#!', '&mode=755')
  await write(join(folder, 'strict'), '', '&mode=0600')

  assert.equal(await readFile(join(folder, 'file'), 'utf8'), 'new')
  assert.equal((await stat(join(folder, 'file'))).mode & 0o7777, 0o640)
  assert.equal(await readlink(join(folder, 'link')), 'file')
  assert.equal(await readFile(join(folder, 'later'), 'utf8'), 'new')
  assert.equal((await stat(join(folder, 'run'))).mode & 0o7777, 0o755)
  assert.equal((await stat(join(folder, 'strict'))).mode & 0o7777, 0o600)
})

/** A folder may be deleted between being listed and being read. */
async function hasPart(folder: string): Promise<boolean> {
  const names = await readdir(folder, { recursive: true }).catch(() => readdir(folder))
  return names.some((name) => name.includes('.berth-part-'))
}

test('an incomplete body leaves the old file and nothing else', async () => {
  const folder = await app.newFolder()
  const path = join(folder, 'made', 'file')
  await writeFile(join(folder, 'old'), 'old')
  const { port, pathname } = new URL(app.url)

  for (const target of [path, join(folder, 'old')]) {
    const socket = connect(Number(port), '127.0.0.1')
    socket.write(`PUT ${pathname}/fs/write_file?${at(target)} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nhalf`)
    while (!(await hasPart(folder))) await turn()
    socket.resetAndDestroy()
    while (await hasPart(folder)) await turn()
  }

  while ((await readdir(folder)).length > 1) await turn()
  assert.deepEqual(await readdir(folder), ['old'])
  assert.equal(await readFile(join(folder, 'old'), 'utf8'), 'old')
})

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

for (const [range, status, contentRange, body] of [
  ['bytes=0-1', 206, 'bytes 0-1/10', '01'],
  ['bytes=8-', 206, 'bytes 8-9/10', '89'],
  ['bytes=-3', 206, 'bytes 7-9/10', '789'],
  ['bytes=5-100', 206, 'bytes 5-9/10', '56789'],
  ['bytes=10-', 416, 'bytes */10', undefined],
  ['bytes=-0', 416, 'bytes */10', undefined],
  ['bytes=0-1,4-5', 200, null, '0123456789'],
  ['bytes=5-1', 200, null, '0123456789'],
  ['lines=0-1', 200, null, '0123456789'],
] as const) {
  test(`the range ${range} of ten bytes is answered with ${status}`, async () => {
    const path = join(await app.newFolder(), 'file')
    await writeFile(path, '0123456789')

    const answer = await read(path, { range })

    assert.equal(answer.status, status)
    assert.equal(answer.headers.get('content-range'), contentRange)
    const text = await answer.text()
    if (body !== undefined) {
      assert.equal(text, body)
      assert.equal(answer.headers.get('content-length'), String(body.length))
    } else assert.equal(JSON.parse(text).code, 'range_not_satisfiable')
  })
}

test('a range of a file that has changed meanwhile returns the whole file', async () => {
  const path = join(await app.newFolder(), 'file')
  await writeFile(path, '0123456789')
  const { headers } = await read(path)
  const etag = headers.get('etag') as string
  const modified = headers.get('last-modified') as string
  const ask = async (condition: string) => (await read(path, { range: 'bytes=0-1', 'if-range': condition })).status

  assert.deepEqual([await ask(etag), await ask(modified), await ask('"other"')], [206, 206, 200])
  assert.equal((await read(path, { 'if-none-match': etag })).status, 304)
  assert.equal((await read(path, { 'if-modified-since': modified })).status, 304)
  await write(path, '0123456789')
  assert.equal(await ask(etag), 200)
  assert.equal((await read(path, { 'if-none-match': etag })).status, 200)
})

test('a file that shrinks while it is read breaks the response off', async () => {
  const path = join(await app.newFolder(), 'file')
  await writeFile(path, Buffer.alloc(64 * 1024 * 1024))

  const answer = await read(path)
  await truncate(path, 1000)

  await assert.rejects(answer.arrayBuffer())
})

test('only regular files are read or written, and nothing hangs', { timeout: 20_000 }, async () => {
  const folder = await app.newFolder()
  execFileSync('mkfifo', [join(folder, 'pipe')])
  const listener = createServer().listen(join(folder, 'socket'))
  await symlink('pipe', join(folder, 'to-pipe'))

  for (const name of ['', 'pipe', 'to-pipe', 'socket']) {
    const path = join(folder, name)
    assert.match(await refusal(read(path)), /^400 path: must be a regular file/, `read ${name}`)
    assert.match(await refusal(write(path, 'x')), /^400 path: must be a regular file/, `write ${name}`)
  }
  for (const path of ['/dev/null', '/dev/zero', '/dev/tty', '/dev/ptmx']) {
    assert.match(await refusal(read(path)), /^400 path: must be a regular file/, path)
    assert.match(await refusal(write(path, 'x')), /^400 path: must be a regular file/, path)
  }
  listener.close()
})

test("the kernel's own files are refused, and the agent is unharmed", { timeout: 20_000 }, async () => {
  const held = `/proc/${process.pid}`
  for (const path of [
    '/proc/self/environ',
    '/proc/self/mem',
    '/proc/kmsg',
    `${held}/maps`,
    '/proc/self/ns/net',
    '/sys/kernel/mm/transparent_hugepage/enabled',
  ]) {
    assert.match(await refusal(read(path)), /^40[03] path: /, `read ${path}`)
    assert.match(await refusal(write(path, 'x')), /^40[03] path: /, `write ${path}`)
  }
  assert.match(await refusal(write('/proc/self/oom_score_adj', '1000')), /^403 path: is a file of the kernel/)
  assert.notEqual(await readFile('/proc/self/oom_score_adj', 'utf8'), '1000\n')
  for (let descriptor = 0; descriptor < 40; descriptor++) {
    const answer = await read(`/proc/self/fd/${descriptor}`, { range: 'bytes=0-0' })
    await answer.arrayBuffer()
    assert.ok(answer.status < 500, `descriptor ${descriptor}: ${answer.status}`)
  }
  const move = app.send('PUT', '/fs/move', { src_path: '/proc/self/environ', dest_path: join(app.folder, 'stolen') })
  assert.match(await refusal(move), /^403 src_path: /)
  assert.match(await refusal(app.call('GET', `/fs/download_dir_zip?${at('/proc')}`)), /^403 path: /)
  assert.match(await refusal(app.send('POST', '/fs/watch', { path: '/proc', recursive: true })), /^403 path: /)
})

test('an invalid path is refused by name', async () => {
  const folder = await app.newFolder()
  await writeFile(join(folder, 'file'), '')
  await symlink('loop', join(folder, 'loop'))
  const long = join(folder, 'x'.repeat(256))

  assert.match(await refusal(read('relative')), /^400 path: must be absolute/)
  assert.match(await refusal(app.call('GET', '/fs/read_file')), /^400 path: /)
  assert.match(await refusal(app.call('GET', '/fs/read_file?path=/a%00b')), /^400 .*NUL/)
  assert.match(await refusal(read(`/${'x/'.repeat(2100)}`)), /^400 path: must have at most 4096/)
  assert.match(await refusal(read(long)), /^400 path: has a name that is too long/)
  assert.match(await refusal(write(long, '')), /^400 path: has a name that is too long/)
  assert.match(await refusal(read(join(folder, 'loop'))), /^400 path: must not go through so many/)
  assert.match(await refusal(write(join(folder, 'loop'), '')), /^400 path: must not go through so many/)
  assert.match(await refusal(read(join(folder, 'none'))), /^404 path: there is no /)
  assert.match(await refusal(read(join(folder, 'file', 'x'))), /^404 path: there is no /)
  assert.match(await refusal(write(join(folder, 'file', 'x'), '')), /^40[04] path: /)
  assert.match(await refusal(write(join(folder, 'file'), '', '&mode=9')), /^400 mode: must be 3 or 4 octal/)
  assert.match(await refusal(write(join(folder, 'file'), '', '&mode=rwx')), /^400 mode: /)
})

test('dots in a path are resolved', async () => {
  const folder = await app.newFolder()
  await mkdir(join(folder, 'sub'))
  await write(`${folder}/sub/../a//./b`, 'x')

  const info = (await (await app.call('GET', `/fs/file_info?${at(`${folder}/sub/../a/b/`)}`)).json()) as {
    path: string
  }

  assert.equal(info.path, `${folder}/a/b`)
  assert.equal(((await (await app.call('GET', `/fs/file_info?${at('/..')}`)).json()) as { path: string }).path, '/')
})

test('a listing is sorted by name, and shows links as links', async () => {
  const folder = await app.newFolder()
  await writeFile(join(folder, 'b'), '12345', { mode: 0o600 })
  await mkdir(join(folder, 'a'))
  await symlink('nowhere', join(folder, 'broken'))
  await writeFile(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff])]), '')
  const list = async (path: string) => (await app.call('GET', `/fs/list_files?${at(path)}`)).json()

  const files = (await list(folder)) as Record<string, unknown>[]

  assert.deepEqual(
    files.map(({ name, is_dir, size_bytes }) => [name, is_dir, size_bytes]),
    [
      ['a', true, 0],
      ['b', false, 5],
      ['broken', false, 7],
      ['\u{fffd}', false, 0],
    ],
  )
  assert.equal(files[1]?.path, `${folder}/b`)
  assert.equal(files[1]?.mode, '-rw-------')
  assert.match(String(files[2]?.mode), /^l/)
  assert.deepEqual(await list(join(folder, 'a')), [])
  assert.match(
    await refusal(app.call('GET', `/fs/list_files?${at(join(folder, 'b'))}`)),
    /^400 path: must be a directory/,
  )
  assert.match(await refusal(app.call('GET', `/fs/list_files?${at(join(folder, 'none'))}`)), /^404 path: /)
})

test('a link is described by its target, or by itself', async () => {
  const folder = await app.newFolder()
  await writeFile(join(folder, 'file'), '12345')
  await symlink('file', join(folder, 'link'))
  await symlink('nowhere', join(folder, 'broken'))
  const info = async (name: string) =>
    (await (await app.call('GET', `/fs/file_info?${at(join(folder, name))}`)).json()) as Record<string, unknown>

  assert.deepEqual([(await info('link')).name, (await info('link')).size_bytes], ['link', 5])
  assert.match(String((await info('broken')).mode), /^l/)
})

test('a directory is created with its parents, and may exist already', async () => {
  const folder = await app.newFolder()
  const make = (path: string, mode?: string) => app.send('PUT', '/fs/create_directory', { path, ...(mode && { mode }) })
  await writeFile(join(folder, 'file'), '')

  assert.equal((await make(join(folder, 'a', 'b'), '700')).status, 201)
  assert.equal((await make(join(folder, 'a', 'b'))).status, 201)
  assert.equal((await make(join(folder, 'c'))).status, 201)

  assert.equal((await stat(join(folder, 'a', 'b'))).mode & 0o777, 0o700)
  assert.equal((await stat(join(folder, 'c'))).mode & 0o777, 0o755)
  assert.match(await refusal(make(join(folder, 'file'))), /^400 path: /)
  assert.match(await refusal(make(join(folder, 'file', 'x'))), /^40[04] path: /)
})

test('files and directories are deleted by different operations', async () => {
  const folder = await app.newFolder()
  await mkdir(join(folder, 'dir', 'deep'), { recursive: true })
  await writeFile(join(folder, 'dir', 'deep', 'file'), '')
  await writeFile(join(folder, 'kept'), '')
  await symlink('kept', join(folder, 'link'))
  const file = (name: string) => app.send('PUT', '/fs/delete_file', { path: join(folder, name) })
  const directory = (path: string) => app.send('PUT', '/fs/delete_directory', { path })

  assert.match(await refusal(file('dir')), /^400 path: must not be a directory/)
  assert.match(await refusal(directory(join(folder, 'kept'))), /^400 path: must be a directory/)
  assert.equal((await file('link')).status, 200)
  assert.match(await refusal(file('link')), /^404 path: /)
  assert.equal((await directory(join(folder, 'dir'))).status, 200)
  assert.equal((await directory(join(folder, 'dir'))).status, 200)
  assert.match(await refusal(directory('/')), /^403 path: /)
  assert.match(await refusal(directory('/proc')), /^403 path: /)

  assert.deepEqual(await readdir(folder), ['kept'])
})

test('a directory deeper than the longest path is deleted', async () => {
  const folder = await app.newFolder()
  const script =
    'for (let i = 0; i < 60; i++) { const n = "d".repeat(200); require("fs").mkdirSync(n); process.chdir(n) }'
  execFileSync(process.execPath, ['-e', script], { cwd: folder })

  assert.equal((await app.send('PUT', '/fs/delete_directory', { path: folder })).status, 200)

  await assert.rejects(lstat(folder), { code: 'ENOENT' })
})

test('permissions are set, and owners if they are known', async () => {
  const folder = await app.newFolder()
  const path = join(folder, 'file')
  await writeFile(path, '')
  const set = (fields: object) => app.send('PUT', '/fs/set_file_permissions', { path, mode: '600', ...fields })

  assert.equal((await set({})).status, 200)
  assert.equal((await stat(path)).mode & 0o7777, 0o600)
  assert.equal((await set({ mode: '4755', owner: 'nobody', group: '12345' })).status, 200)
  assert.equal((await stat(path)).mode & 0o7777, 0o4755)
  assert.match(await refusal(set({ owner: 'no such user' })), /^400 owner: /)
  assert.match(await refusal(set({ mode: '888' })), /^400 mode: /)
  assert.match(await refusal(set({ path: join(folder, 'none') })), /^404 path: /)
})

test('moves files and directories, and replaces files', async () => {
  const folder = await app.newFolder()
  const move = (from: string, to: string) =>
    app.send('PUT', '/fs/move', { src_path: join(folder, from), dest_path: join(folder, to) })
  await writeFile(join(folder, 'a'), 'a')
  await writeFile(join(folder, 'b'), 'b')
  await mkdir(join(folder, 'dir'))
  await writeFile(join(folder, 'dir', 'x'), 'x')
  await mkdir(join(folder, 'empty'))

  assert.equal((await move('a', 'b')).status, 200)
  assert.equal(await readFile(join(folder, 'b'), 'utf8'), 'a')
  assert.match(await refusal(move('b', 'dir')), /^400 dest_path: must not be a directory/)
  assert.match(await refusal(move('dir', 'b')), /^400 dest_path: must not be a file/)
  assert.match(await refusal(move('empty', 'dir')), /^400 dest_path: must not be a non-empty directory/)
  assert.match(await refusal(move('dir', 'dir/y')), /^400 dest_path: must not be inside src_path/)
  assert.match(await refusal(move('b', 'none/b')), /^404 dest_path: there is no .*none\./)
  assert.match(await refusal(move('none', 'c')), /^404 src_path: /)
  assert.equal((await move('dir', 'empty')).status, 200)
  assert.equal((await move('b', 'b')).status, 200)
  assert.deepEqual(await readdir(folder, { recursive: true }), ['b', 'empty', 'empty/x'])
})

test('moves to another file system completely or not at all', { skip: await isOneDisk() }, async () => {
  const folder = await app.newFolder()
  const there = join('/dev/shm', `berth-test-${process.pid}`)
  await mkdir(there)
  await mkdir(join(folder, 'dir'))
  await writeFile(join(folder, 'dir', 'run'), '#!', { mode: 0o755 })
  await chmod(join(folder, 'dir'), 0o750)
  await symlink('/nowhere', join(folder, 'dir', 'link'))
  await link(join(folder, 'dir', 'run'), join(folder, 'file'))
  execFileSync('mkfifo', [join(folder, 'pipe')])
  const move = (from: string, to: string) => app.send('PUT', '/fs/move', { src_path: from, dest_path: to })

  assert.equal((await move(join(folder, 'dir'), join(there, 'dir'))).status, 200)
  assert.equal((await move(join(folder, 'file'), join(there, 'file'))).status, 200)
  assert.match(await refusal(move(join(folder, 'pipe'), join(there, 'pipe'))), /^400 src_path: must contain only/)

  assert.deepEqual((await readdir(there, { recursive: true })).sort(), ['dir', 'dir/link', 'dir/run', 'file'])
  assert.equal((await stat(join(there, 'dir'))).mode & 0o777, 0o750)
  assert.equal((await stat(join(there, 'dir', 'run'))).mode & 0o777, 0o755)
  assert.equal(await readlink(join(there, 'dir', 'link')), '/nowhere')
  assert.deepEqual(await readdir(folder), ['pipe'])
  await rm(there, { recursive: true })
})

test('a full disk is reported, and leaves the old file', { skip: process.getuid?.() !== 0 }, async () => {
  const folder = await app.newFolder()
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'berth-test', folder])
  try {
    await writeFile(join(folder, 'file'), 'old')

    const answer = await write(join(folder, 'file'), 'x'.repeat(2_000_000))

    assert.equal(answer.headers.get('x-should-retry'), 'false')
    assert.match(await refusal(Promise.resolve(answer)), /^507 path: the disk is full/)
    assert.deepEqual(await readdir(folder), ['file'])
    assert.equal(await readFile(join(folder, 'file'), 'utf8'), 'old')
    await writeFile(join(app.folder, 'large'), 'x'.repeat(2_000_000))
    const move = { src_path: join(app.folder, 'large'), dest_path: join(folder, 'large') }
    assert.match(await refusal(app.send('PUT', '/fs/move', move)), /^507 dest_path: /)
    assert.deepEqual(await readdir(folder), ['file'])
    assert.ok(await stat(move.src_path))
  } finally {
    execFileSync('umount', [folder])
  }
})

async function isOneDisk(): Promise<boolean> {
  return (await stat('/dev/shm')).dev === (await stat(app.folder)).dev
}
