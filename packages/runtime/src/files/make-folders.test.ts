import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { makeFolders, nearestFolder } from './make-folders.ts'

const root = await mkdtemp(join(tmpdir(), 'berth-folders-'))
after(() => rm(root, { recursive: true, force: true }))

test('creates a folder with its parents, and returns the topmost new one', async () => {
  assert.equal(await makeFolders(join(root, 'a', 'b', 'c')), join(root, 'a'))
  assert.equal(await makeFolders(join(root, 'a', 'b', 'c', 'd')), join(root, 'a', 'b', 'c', 'd'))
  assert.equal(await makeFolders(join(root, 'a')), undefined)

  assert.ok((await stat(join(root, 'a', 'b', 'c', 'd'))).isDirectory())
  assert.equal(await nearestFolder(join(root, 'a', 'none', 'deeper')), join(root, 'a'))
})

test('concurrent calls for the same folders both succeed', async () => {
  const path = join(root, 'shared', ...'abcdefgh')

  await Promise.all(Array.from({ length: 8 }, () => makeFolders(path)))

  assert.ok((await stat(path)).isDirectory())
})

test('rejects with the system’s error if no folder can be created', async () => {
  await writeFile(join(root, 'file'), '')
  await symlink('nowhere', join(root, 'dangling'))
  await mkdir(join(root, 'long'))

  await assert.rejects(makeFolders(join(root, 'file')), { code: 'EEXIST' })
  await assert.rejects(makeFolders(join(root, 'file', 'x', 'y')), { code: 'EEXIST' })
  await assert.rejects(makeFolders(join(root, 'dangling', 'x')), { code: 'EEXIST' })
  await assert.rejects(makeFolders(join(root, 'long', 'x'.repeat(300), 'y')), { code: 'ENAMETOOLONG' })
  // Node's recursive mkdir would never return here.
  await assert.rejects(makeFolders('/proc/berth/x'), { code: /ENOENT|EPERM|EACCES/ })
})
