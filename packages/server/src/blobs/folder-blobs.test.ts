import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { blobSuite, pieces } from './blob-suite.ts'
import { FolderBlobs } from './folder-blobs.ts'

const folder = await mkdtemp(join(tmpdir(), 'berth-blobs-'))
await blobSuite('folder', async () => ({
  blobs: await FolderBlobs.open(folder),
  close: () => rm(folder, { recursive: true }),
}))

test('an incomplete write leaves no file', async () => {
  const blobs = await FolderBlobs.open(folder)

  await assert.rejects(blobs.write('b-1', pieces('half', new Error('the client has left'))), /has left/)
  await blobs.write('b-2', pieces('whole'))
  await assert.rejects(blobs.write('b-2', pieces('second')))

  assert.deepEqual(
    (await readdir(folder)).filter((name) => name.startsWith('b-')),
    ['b-2'],
  )
})

test('the next start removes incomplete writes of a crash', async () => {
  await writeFile(join(folder, 'e-1.x.new'), 'half')

  await FolderBlobs.open(folder)

  assert.ok(!(await readdir(folder)).includes('e-1.x.new'))
})

test('incomplete writes are removed when they are old enough', async () => {
  const blobs = await FolderBlobs.open(folder)
  const [old, fresh] = [join(folder, 'f-1.x.new'), join(folder, 'f-2.x.new')]
  for (const path of [old, fresh]) await writeFile(path, 'half')
  await utimes(old, new Date(0), new Date(0))

  await blobs.removeUnfinished(new Date(Date.now() - 60_000))

  assert.deepEqual(
    (await readdir(folder)).filter((name) => name.startsWith('f-')),
    ['f-2.x.new'],
  )
})
