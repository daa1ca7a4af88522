import assert from 'node:assert/strict'
import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { deflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { linkMode, zip } from '../testing/zip.ts'
import { Archive } from './archive.ts'
import { mergeFolder } from './merge-folder.ts'
import { unpackArchive } from './unpack-archive.ts'

const folder = await mkdtemp(join(tmpdir(), 'berth-archive-'))
after(() => rm(folder, { recursive: true }))
let count = 0
const limits = { maxEntries: 100, maxUnpackedBytes: 1_000_000 }

async function write(bytes: Uint8Array): Promise<string> {
  const path = join(folder, `${++count}.zip`)
  await writeFile(path, bytes)
  return path
}

/** Unpacks into a new folder within another new folder, and returns both. */
async function unpack(bytes: Uint8Array, root?: string): Promise<{ target: string; around: string }> {
  const path = await write(bytes)
  const around = await mkdtemp(join(folder, 'around-'))
  const target = join(around, 'target')
  try {
    await using archive = await Archive.open(path, limits)
    await unpackArchive(archive, { folder: target, root })
  } catch (error) {
    assert.deepEqual(await readdir(around), [], 'a refused archive left something')
    throw error
  }
  return { target, around }
}

async function verifyInMemory(bytes: Buffer): Promise<void> {
  await using archive = await Archive.open(bytes, limits)
  await archive.verify()
}

const good = { name: 'a', content: 'hello' }
const zeros = Buffer.alloc(2_000_000)

for (const [what, bytes, message] of [
  ['a way up', zip(good, { name: '../escape.txt' }), /relative path|leads out/],
  ['a way up in the middle', zip({ name: 'x/../../escape.txt' }), /relative path|leads out/],
  ['a way up with backslashes', zip({ name: '..\\escape.txt' }), /relative path|leads out/],
  ['an absolute path', zip({ name: '/etc/escape.txt' }), /absolute path/],
  ['an absolute path of Windows', zip({ name: 'C:/escape.txt' }), /absolute path/],
  [
    'a link outside and a file below it',
    zip({ name: 'l', content: '/etc', mode: linkMode }, { name: 'l/x' }),
    /below a link/,
  ],
  [
    'a file below a link inside',
    zip({ name: 'd/a' }, { name: 'l', content: 'd', mode: linkMode }, { name: 'l/x' }),
    /below a link/,
  ],
  ['a file below a file', zip(good, { name: 'a/b' }), /below a file/],
  ['a link that leads out', zip(good, { name: 'l', content: '../../outside', mode: linkMode }), /leads out/],
  ['an absolute link', zip(good, { name: 'l', content: '/etc/passwd', mode: linkMode }), /leads out/],
  ['a link one level too high', zip(good, { name: 'd/l', content: '../../x', mode: linkMode }), /leads out/],
  [
    'a link that leads out by way of another',
    zip(good, { name: 'd', content: '.', mode: linkMode }, { name: 'l', content: 'd/../x', mode: linkMode }),
    /with \.\. after a name/,
  ],
  ['an empty link', zip(good, { name: 'l', content: '', mode: linkMode }), /link to nothing/],
  ['a device', zip(good, { name: 'd', mode: 0o020666 }), /neither a file/],
  ['two files of one name', zip(good, good), /twice/],
  ['two files of one name, spelled differently', zip(good, { name: './a' }), /twice/],
  ['a file and a folder of one name', zip(good, { name: 'a/' }), /twice/],
  ['more bytes than allowed', zip({ name: 'a', content: zeros }), /larger than/],
  [
    'more bytes than allowed in many files',
    zip(...['a', 'b', 'c'].map((name) => ({ name, content: zeros.subarray(0, 400_000) }))),
    /larger than/,
  ],
  ['more bytes than it says', zip({ name: 'a', content: zeros, claimedSize: 5 }), /more|too many/i],
  ['fewer bytes than it says', zip({ name: 'a', content: 'x', claimedSize: 500 }), /not enough|fewer|too few/i],
  ['8 GiB of zeros', zip({ name: 'a', content: zeros, claimedSize: 0xfffffffe }), /larger than/],
  ['damaged content', zip({ name: 'a', content: 'hello', claimedSum: 1 }), /damaged/],
  ['an encrypted file', zip({ ...good, isEncrypted: true }), /encrypted/],
  ['too many files', zip(...Array.from({ length: 101 }, (_, index) => ({ name: String(index) }))), /more than 100/],
  ['a name with a NUL', zip({ name: 'a\0b' }), /not a valid name/],
  ['a name that is too long', zip({ name: 'x'.repeat(256) }), /too long a name/],
  ['no file', zip(), /no file/],
  ['folders alone', zip({ name: 'd/' }), /no file/],
  ['nothing at all', Buffer.alloc(0), /./],
  ['something else', Buffer.from('#!/bin/sh\n'.repeat(50)), /./],
  ['a truncated archive', zip(good, { name: 'b', content: 'x'.repeat(5000) }).subarray(0, -30), /./],
  ['an archive without its beginning', zip(good, { name: 'b', content: 'x'.repeat(5000) }).subarray(30), /./],
  ['content that was not packed', zip({ name: 'a', content: 'x' }).fill(0xff, 31, 34), /./],
] as [string, Buffer, RegExp][]) {
  test(`rejects ${what}, and leaves nothing of it`, async () => {
    await assert.rejects(unpack(bytes), { name: 'BadArchive', message })
    await assert.rejects(verifyInMemory(bytes), { name: 'BadArchive', message })
  })
}

test('unpacks files, folders and links inside', async () => {
  const { target } = await unpack(
    zip(
      { name: 'd/', mode: 0o040755 },
      { name: 'd/a', content: 'hello' },
      { name: 'd/b', content: 'a', mode: linkMode },
      { name: './run.sh', content: '#!', mode: 0o104755 },
      { name: 'd/e/up', content: '../../d/a', mode: linkMode },
    ),
  )

  assert.equal(await readFile(join(target, 'd/b'), 'utf8'), 'hello')
  assert.equal(await readlink(join(target, 'd/e/up')), '../../d/a')
  assert.equal((await lstat(join(target, 'run.sh'))).mode & 0o7777, 0o755)
  assert.equal((await lstat(join(target, 'd/a'))).mode & 0o7777, 0o644)
})

test('unpacks only the content of a folder', async () => {
  const { target } = await unpack(zip({ name: 'ext/a', content: 'hello' }, { name: '__MACOSX/a' }), 'ext')

  assert.deepEqual(await readdir(target), ['a'])
})

test('rejects a link that leads out of the unpacked folder', async () => {
  const bytes = zip({ name: 'ext/a' }, { name: 'other' }, { name: 'ext/l', content: '../other', mode: linkMode })

  await assert.rejects(unpack(bytes, 'ext'), { name: 'BadArchive', message: /leads out/ })
})

test('unpacks only into a new folder', async () => {
  await using archive = await Archive.open(await write(zip(good)), limits)
  const target = await mkdtemp(join(folder, 'there-'))

  await assert.rejects(unpackArchive(archive, { folder: target }), { code: 'EEXIST' })

  assert.deepEqual(await readdir(target), [])
})

test('verifies content without unpacking it', async () => {
  await using fine = await Archive.open(await write(zip(good)), limits)
  await using damaged = await Archive.open(await write(zip({ ...good, claimedSum: 1 })), limits)

  await fine.verify()
  await assert.rejects(damaged.verify(), { name: 'BadArchive' })
})

test('accepts or rejects any bytes without other errors', async () => {
  const whole = zip(good, { name: 'd/b', content: deflateRawSync(zeros) }, { name: 'l', content: 'a', mode: linkMode })
  const change = fc.record({ at: fc.nat(whole.length - 1), to: fc.nat(255) })
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 5 }), async (changes) => {
      const bytes = Buffer.from(whole)
      for (const { at, to } of changes) bytes[at] = to
      try {
        await using archive = await Archive.open(await write(bytes), limits)
        await archive.verify()
      } catch (error) {
        assert.equal((error as Error).name, 'BadArchive', String((error as Error).stack))
      }
    }),
    { numRuns: 200 },
  )
})

test('merges into a folder, replacing files and links, without following a link', async () => {
  const { target, around } = await unpack(zip({ name: 'd/a', content: 'new' }, { name: 'e/f/g', content: 'new' }))
  const into = await mkdtemp(join(folder, 'into-'))
  const outside = await mkdtemp(join(folder, 'outside-'))
  await writeFile(join(outside, 'a'), 'safe')
  await mkdir(join(into, 'd'))
  await writeFile(join(into, 'd', 'kept'), 'kept')
  await symlink(join(outside, 'a'), join(into, 'd', 'a'))

  await mergeFolder(target, into)

  assert.equal(await readFile(join(into, 'd', 'a'), 'utf8'), 'new')
  assert.equal(await readFile(join(into, 'd', 'kept'), 'utf8'), 'kept')
  assert.equal(await readFile(join(into, 'e/f/g'), 'utf8'), 'new')
  assert.equal(await readFile(join(outside, 'a'), 'utf8'), 'safe')
  await rm(around, { recursive: true })
})

test('merges nothing when a link exists where a folder is needed', async () => {
  const { target } = await unpack(zip({ name: 'a', content: 'new' }, { name: 'd/x', content: 'new' }))
  const into = await mkdtemp(join(folder, 'into-'))
  const outside = await mkdtemp(join(folder, 'outside-'))
  await symlink(outside, join(into, 'd'))

  await assert.rejects(mergeFolder(target, into), { name: 'BadArchive', message: /a link in the target/ })

  assert.deepEqual(await readdir(outside), [])
  assert.deepEqual(await readdir(into), ['d'])
})
