import assert from 'node:assert/strict'
import { lstat, mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { linkMode, zip } from '@berth/runtime/testing/zip.ts'
import { ServedApp } from '../../testing/served-app.ts'

const app = await ServedApp.start()
after(() => app[Symbol.asyncDispose]())
const boundary = 'x-berth-boundary'

/** A multipart body with the parts in the given order: files have `bytes`. */
function upload(operation: string, parts: readonly (readonly [string, string | Uint8Array])[]): Promise<Response> {
  const chunks = parts.flatMap(([name, content]) => {
    const file = typeof content === 'string' ? '' : '; filename="f"\r\ncontent-type: application/octet-stream'
    return [`--${boundary}\r\ncontent-disposition: form-data; name="${name}"${file}\r\n\r\n`, content, '\r\n']
  })
  const body = Buffer.concat([...chunks, `--${boundary}--\r\n`].map((chunk) => Buffer.from(chunk)))
  return app.call('POST', `/fs/${operation}`, {
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    body,
  })
}

const bytes = (text: string) => new TextEncoder().encode(text)
const refusal = async (answer: Promise<Response>) => {
  const response = await answer
  return `${response.status} ${((await response.json()) as { message: string }).message}`
}

for (const [spelling, parts] of Object.entries({
  'the TypeScript client, texts first': [
    ['files[0][dest_path]', 'a'],
    ['files[1][dest_path]', ' sub/b '],
    ['files[1][file]', 'B'],
    ['files[0][file]', 'A'],
  ],
  'the TypeScript client, files first and a gap': [
    ['files[7][file]', 'B'],
    ['files[2][file]', 'A'],
    ['files[2][dest_path]', 'a'],
    ['files[7][dest_path]', 'sub/b'],
  ],
  'the Python client': [
    ['files[][file]', 'A'],
    ['files[][file]', 'B'],
    ['files[][dest_path]', 'a'],
    ['files[][dest_path]', 'sub/b'],
  ],
  'the Go client': [
    ['files.0.file', 'A'],
    ['files.0.dest_path', 'a'],
    ['files.1.dest_path', 'sub/b'],
    ['files.1.file', 'B'],
  ],
  'dots behind brackets': [
    ['files[0].file', 'A'],
    ['files[0].dest_path', 'a'],
    ['files[1].file', 'B'],
    ['files[1].dest_path', 'sub/b'],
  ],
  'bare pairs': [
    ['file', 'A'],
    ['dest_path', 'a'],
    ['dest_path', 'sub/b'],
    ['file', 'B'],
  ],
} as Record<string, [string, string][]>)) {
  test(`accepts files as ${spelling} sends them`, async () => {
    const folder = await app.newFolder()
    await writeFile(join(folder, 'a'), 'old')

    const answer = await upload(
      'upload',
      parts.map(([name, value]) => [
        name,
        name.endsWith('file') || name.endsWith('file]')
          ? bytes(value)
          : `${value.startsWith(' ') ? ' ' : ''}${folder}/${value.trimStart()}`,
      ]),
    )

    assert.equal(answer.status, 201, await answer.text())
    assert.equal(await readFile(join(folder, 'a'), 'utf8'), 'A')
    assert.equal(await readFile(join(folder, 'sub', 'b'), 'utf8'), 'B')
    assert.equal((await stat(join(folder, 'sub', 'b'))).mode & 0o777, 0o644)
  })
}

test('an upload with one invalid part writes nothing', async () => {
  const folder = await app.newFolder()
  await writeFile(join(folder, 'old'), 'old')
  const good = [
    ['files[0][dest_path]', `${folder}/made/a`],
    ['files[0][file]', bytes('A')],
  ] as const
  const old = [
    ['files[5][dest_path]', `${folder}/old`],
    ['files[5][file]', bytes('new')],
  ] as const

  for (const [parts, message] of [
    [[...good, ['files[1][file]', bytes('B')]], /^400 files\[1\]: its dest_path is missing/],
    [[...good, ['files[1][dest_path]', `${folder}/b`]], /^400 files\[1\]: its file is missing/],
    [
      [...good, ...old, ['files[1][dest_path]', 'relative'], ['files[1][file]', bytes('B')]],
      /^400 files\[1\]\[dest_path\]: must be absolute/,
    ],
    [
      [...good, ['files[1][dest_path]', `${folder}/old/x`], ['files[1][file]', bytes('B')]],
      /^40[04] files\[1\]\[dest_path\]: /,
    ],
    [
      [...good, ['files[1][dest_path]', '/proc/self/comm'], ['files[1][file]', bytes('B')]],
      /^403 files\[1\]\[dest_path\]: /,
    ],
    [[], /^400 files: must have at least 1 item/],
  ] as [[string, string | Uint8Array][], RegExp][]) {
    assert.match(await refusal(upload('upload', parts)), message)
    assert.deepEqual(await readdir(folder), ['old'], String(message))
  }
  assert.equal(await readFile(join(folder, 'old'), 'utf8'), 'old')
  const json = app.send('POST', '/fs/upload', { files: [] })
  assert.match(await refusal(json), /^415 /)
})

test('an archive is unpacked over existing files, and downloads unchanged', async () => {
  const folder = await app.newFolder()
  await mkdir(join(folder, 'z', 'd'), { recursive: true })
  await writeFile(join(folder, 'z', 'd', 'kept'), 'kept')
  await writeFile(join(folder, 'z', 'a'), 'old')
  const archive = zip(
    { name: 'a', content: 'new' },
    { name: 'b', content: 'a', mode: linkMode },
    { name: 'd/run', content: '#!', mode: 0o100755 },
    { name: 'empty/', mode: 0o040755 },
  )

  const sent = await upload('upload_zip', [
    ['zip_file', archive],
    ['dest_path', join(folder, 'z')],
  ])
  assert.equal(sent.status, 201, await sent.text())
  assert.equal(await readFile(join(folder, 'z', 'b'), 'utf8'), 'new')
  assert.equal(await readFile(join(folder, 'z', 'd', 'kept'), 'utf8'), 'kept')

  const download = await app.call('GET', `/fs/download_dir_zip?path=${join(folder, 'z')}`)
  assert.equal(download.headers.get('content-type'), 'application/zip')
  const again = await upload('upload_zip', [
    ['dest_path', join(folder, 'new', 'y')],
    ['zip_file', new Uint8Array(await download.arrayBuffer())],
  ])
  assert.equal(again.status, 201, await again.text())

  const copy = join(folder, 'new', 'y')
  assert.deepEqual((await readdir(copy, { recursive: true })).sort(), ['a', 'b', 'd', 'd/kept', 'd/run', 'empty'])
  assert.equal(await readlink(join(copy, 'b')), 'a')
  assert.equal(await readFile(join(copy, 'b'), 'utf8'), 'new')
  assert.equal((await stat(join(copy, 'd', 'run'))).mode & 0o777, 0o755)
  assert.deepEqual((await readdir(folder)).sort(), ['new', 'z'])
})

test('nothing of a refused archive is unpacked, and no links are followed', async () => {
  const folder = await app.newFolder()
  const outside = await app.newFolder()
  await mkdir(join(folder, 'z'))
  await symlink(outside, join(folder, 'z', 'there'))
  await writeFile(join(folder, 'file'), '')
  const send = (archive: Uint8Array, destination = join(folder, 'z')) =>
    refusal(
      upload('upload_zip', [
        ['zip_file', archive],
        ['dest_path', destination],
      ]),
    )

  for (const [archive, message] of [
    [zip({ name: 'ok' }, { name: '../escape' }), /relative path|leads out/],
    [zip({ name: 'ok' }, { name: '/escape' }), /absolute/],
    [zip({ name: 'ok' }, { name: 'l', content: '/etc', mode: linkMode }, { name: 'l/x' }), /below a link|leads out/],
    [zip({ name: 'ok' }, { name: 'l', content: '../../outside', mode: linkMode }), /leads out/],
    [zip({ name: 'ok' }, { name: 'there/x' }), /link in the target/],
    [
      zip(
        { name: 'big', content: 'x', claimedSize: 0xfffffff0 },
        { name: 'big2', content: 'x', claimedSize: 0xfffffff0 },
      ),
      /larger than/,
    ],
    [zip({ name: 'ok' }, { name: 'ok' }), /twice/],
    [zip({ name: 'ok', content: 'x'.repeat(10_000) }).subarray(0, -40), /./],
    [zip(), /no file/],
    [Buffer.alloc(0), /./],
  ] as [Buffer, RegExp][]) {
    const told = await send(archive)
    assert.match(told, /^400 zip_file: the archive is rejected: /)
    assert.match(told, message)
    assert.deepEqual(await readdir(join(folder, 'z')), ['there'], told)
  }
  const good = zip({ name: 'a' })
  assert.match(await send(good, join(folder, 'file')), /^400 dest_path: must be a directory/)
  assert.match(await send(good, '/proc/new'), /^403 dest_path: /)
  assert.match(await send(good, 'relative'), /^400 dest_path: must be absolute/)
  assert.match(await refusal(upload('upload_zip', [['dest_path', folder]])), /^400 zip_file: is missing/)
  assert.match(await refusal(upload('upload_zip', [['zip_file', good]])), /^400 dest_path: is missing/)
  assert.deepEqual(await readdir(outside), [])
  assert.deepEqual((await readdir(folder)).sort(), ['file', 'z'])
})

test('only directories are downloaded as archives', async () => {
  const folder = await app.newFolder()
  await writeFile(join(folder, 'file'), '')
  const download = (path: string) => app.call('GET', `/fs/download_dir_zip?path=${path}`)

  assert.match(await refusal(download(join(folder, 'file'))), /^400 path: must be a directory/)
  assert.match(await refusal(download(join(folder, 'none'))), /^404 path: /)
  assert.equal((await download(await app.newFolder())).status, 200)
})

test('packing ends when the caller disconnects', async () => {
  const folder = await app.newFolder()
  await writeFile(join(folder, 'big'), Buffer.alloc(1))
  const { truncate } = await import('node:fs/promises')
  await truncate(join(folder, 'big'), 20 * 1024 ** 3)
  const leave = new AbortController()

  const answer = await app.call('GET', `/fs/download_dir_zip?path=${folder}`, { signal: leave.signal })
  await answer.body?.getReader().read()
  leave.abort()

  while ((await openFiles()).includes(join(folder, 'big'))) await delay(5)
})

async function openFiles(): Promise<readonly string[]> {
  const descriptors = await readdir('/proc/self/fd')
  return Promise.all(descriptors.map((descriptor) => readlink(`/proc/self/fd/${descriptor}`).catch(() => '')))
}

test('an archive contains only regular files and directories', async () => {
  const folder = await app.newFolder()
  const { execFileSync } = await import('node:child_process')
  execFileSync('mkfifo', [join(folder, 'pipe')])
  await writeFile(join(folder, 'a'), 'x')

  const download = await app.call('GET', `/fs/download_dir_zip?path=${folder}`)
  await upload('upload_zip', [
    ['dest_path', join(folder, 'copy')],
    ['zip_file', new Uint8Array(await download.arrayBuffer())],
  ])

  assert.deepEqual(await readdir(join(folder, 'copy')), ['a'])
  assert.ok((await lstat(join(folder, 'pipe'))).isFIFO())
})
