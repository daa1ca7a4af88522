import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { zstdCompressSync } from 'node:zlib'
import { packProfile, unpackProfile } from './profile-archive.ts'

const folder = mkdtempSync(join(tmpdir(), 'berth-profile-'))
after(() => rmSync(folder, { recursive: true }))

/** Creates a folder with the files, each containing its name. */
function folderOf(name: string, files: readonly string[]): string {
  for (const file of files) {
    const path = join(folder, name, file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, file)
  }
  return join(folder, name)
}

function emptyFolder(name: string): string {
  mkdirSync(join(folder, name, 'in'), { recursive: true })
  return join(folder, name, 'in')
}

function tarOf(source: string, ...args: string[]): Buffer {
  return zstdCompressSync(execFileSync('tar', ['-c', '-P', '-C', source, ...args]))
}

test('an archive contains the state of pages and users, and nothing of the machine or the run', async () => {
  const kept = [
    'Default/Cookies',
    'Default/Extensions/abc/1.0/Cache/x',
    'Default/IndexedDB/http_a.leveldb/000003.log',
    'Default/Preferences',
    'Default/Service Worker/CacheStorage/x',
    'Default/Service Worker/ScriptCache/x',
    'Default/Sessions/Session_1',
  ]
  const source = folderOf('source', [
    ...kept,
    'Default/Cache/Cache_Data/x',
    'Default/Code Cache/js/x',
    'Default/GPUCache/x',
    'Default/IndexedDB/http_a.leveldb/LOCK',
    'Default/IndexedDB/http_a.leveldb/LOG.old',
    'Default/LOCK',
    'Crash Reports/x',
    'Local State',
    'ShaderCache/x',
  ])
  symlinkSync('nowhere-1', join(source, 'SingletonLock'))
  const target = emptyFolder('target')

  await unpackProfile(packProfile(source), target)

  const found = readdirSync(target, { recursive: true, withFileTypes: true })
  assert.deepEqual(
    found
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name).slice(target.length + 1))
      .toSorted(),
    kept,
  )
})

test('a folder without state is not archived', async () => {
  await assert.rejects(buffer(packProfile(emptyFolder('nothing'))), /tar ended with 2/)
})

const whole = tarOf(folderOf('whole', ['Default/Cookies', 'Default/History', 'Else/x']), 'Default', 'Else')

test('an archive with many zeros after its end is complete', async () => {
  const plain = execFileSync('tar', ['-c', '-C', join(folder, 'whole'), 'Default'])
  const target = emptyFolder('zeros')

  await unpackProfile(Readable.from([zstdCompressSync(Buffer.concat([plain, Buffer.alloc(5_000_000)]))]), target)

  assert.deepEqual(readdirSync(join(target, 'Default')).toSorted(), ['Cookies', 'History'])
})

for (const [what, archive] of [
  ['nothing at all', Buffer.alloc(0)],
  ['no archive', Buffer.from('<html>')],
  ['an archive that is cut', whole.subarray(0, -20)],
  ['a compressed nothing', zstdCompressSync(Buffer.alloc(0))],
  ['no archive, compressed', zstdCompressSync(Buffer.from('no archive'.repeat(1000)))],
  ['an archive without a state', tarOf(join(folder, 'whole'), 'Else')],
] as const) {
  test(`${what} is refused`, async () => {
    await assert.rejects(unpackProfile(Readable.from([archive]), emptyFolder(`refused ${what}`)))
  })
}

test('an archive writes only into the folder', async () => {
  const target = emptyFolder('inside')
  const outside = join(folder, 'outside')
  const source = folderOf('hostile', ['Default/x', 'y'])
  mkdirSync(outside)
  symlinkSync(outside, join(source, 'Default', 'way'))
  const archive = Buffer.concat(
    ['x', 'way'].map((name) => execFileSync('tar', ['-c', '-b1', '-P', '-C', source, `Default/${name}`])),
  )
  const through = execFileSync('tar', ['-c', '-P', '-C', source, '--transform=s,y,Default/way/y,', 'y'])
  const above = execFileSync('tar', ['-c', '-P', '-C', source, '--transform=s,y,Default/../../above,', 'y'])
  const absolute = execFileSync('tar', ['-c', '-P', '-C', source, `--transform=s,y,${folder}/absolute,`, 'y'])
  // One archive made of several: all but the last without the zeros at its end.
  const parts = [archive, through, above, absolute].map((part) => part.subarray(0, lastBlock(part)))

  await unpackProfile(Readable.from([zstdCompressSync(Buffer.concat([...parts, Buffer.alloc(1024)]))]), target).catch(
    () => {},
  )

  assert.deepEqual(readdirSync(outside), [])
  assert.ok(!existsSync(join(folder, 'inside', 'above')) && !existsSync(join(folder, 'above')))
  assert.ok(!existsSync(join(folder, 'absolute')))
})

function lastBlock(tar: Buffer): number {
  let end = tar.length
  while (end >= 512 && tar.subarray(end - 512, end).every((byte) => byte === 0)) end -= 512
  return end
}
