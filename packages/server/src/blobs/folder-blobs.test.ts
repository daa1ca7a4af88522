import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { FolderBlobs } from './folder-blobs.ts'

const folder = await mkdtemp(join(tmpdir(), 'berth-blobs-'))
after(() => rm(folder, { recursive: true }))
const blobs = await FolderBlobs.open(folder)

async function* pieces(...parts: (string | Error)[]) {
  for (const part of parts) {
    if (part instanceof Error) throw part
    yield Buffer.from(part)
  }
}

test('a blob is read as it was written', async () => {
  assert.deepEqual(await blobs.write('a-1', pieces('hel', 'lo')), { sizeBytes: 5 })

  assert.equal(await text(await blobs.read('a-1')), 'hello')
})

test('a write that breaks off leaves nothing', async () => {
  await assert.rejects(blobs.write('b-1', pieces('half', new Error('the client has left'))), /has left/)

  assert.ok(!(await readdir(folder)).some((name) => name.startsWith('b-1')))
})

test('of two writes of one name the first wins whole', async () => {
  const both = await Promise.allSettled([blobs.write('c-1', pieces('one')), blobs.write('c-1', pieces('two'))])

  assert.equal(both.filter(({ status }) => status === 'fulfilled').length, 1)
  assert.match(await text(await blobs.read('c-1')), /^(one|two)$/)
})

test('a reader has a removed blob whole', async () => {
  await blobs.write('d-1', pieces('x'.repeat(300_000)))
  const reader = await blobs.read('d-1')
  await blobs.remove('d-1')
  await blobs.remove('d-1')

  assert.equal((await text(reader)).length, 300_000)
  await assert.rejects(blobs.read('d-1'), { code: 'ENOENT' })
})

test('what a crash has left half written is gone with the next start', async () => {
  await writeFile(join(folder, 'e-1.new'), 'half')

  await FolderBlobs.open(folder)

  assert.ok(!(await readdir(folder)).includes('e-1.new'))
})

test('lists what is older than a moment', async () => {
  await blobs.write('f-1', pieces('x'))

  assert.deepEqual((await blobs.list(new Date(Date.now() + 10_000))).includes('f-1'), true)
  assert.deepEqual(await blobs.list(new Date(0)), [])
})

test('takes no path for a name', async () => {
  await assert.rejects(blobs.read('../master-key'), /no name of a blob/)
})
