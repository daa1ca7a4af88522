import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readOrCreateFile } from './read-or-create-file.ts'

const folder = await mkdtemp(join(tmpdir(), 'berth-kept-'))
after(() => rm(folder, { recursive: true }))

test('creates the file once, only for its owner, and leaves no other file', async () => {
  const path = join(folder, 'once')

  const first = await readOrCreateFile(path, () => 'one')
  const second = await readOrCreateFile(path, () => 'two')

  assert.deepEqual([first, second], ['one', 'one'])
  assert.equal((await stat(path)).mode & 0o777, 0o600)
  assert.deepEqual(await readdir(folder), ['once'])
})

test('reports why a file cannot be created', async () => {
  await assert.rejects(
    readOrCreateFile(join(folder, 'missing', 'file'), () => 'x'),
    { code: 'ENOENT' },
  )
})
