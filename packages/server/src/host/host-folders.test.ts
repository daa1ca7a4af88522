import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmod, link, mkdir, mkdtemp, rm, rmdir, stat, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { exists } from '@berth/runtime/files/exists.ts'
import { StartError } from '../start-error.ts'
import { openHostFolders, removeUnusedRuntimeFolder } from './host-folders.ts'

const isRoot = process.geteuid?.() === 0

async function emptyFolder(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-test-'))
  context.after(() => rm(folder, { recursive: true }))
  return folder
}

async function open(context: TestContext, dataFolder: string, userRuntimeFolder?: string) {
  const folders = await openHostFolders({ dataFolder, userRuntimeFolder })
  context.after(() => rm(folders.runtime, { recursive: true, force: true }))
  return folders
}

test('creates both folders for berth only', async (context) => {
  const { data, runtime } = await open(context, join(await emptyFolder(context), 'deep', 'berth'))

  for (const folder of [data, runtime]) assert.equal((await stat(folder)).mode & 0o777, 0o700)
})

test('gives one data folder one runtime folder, whatever path it is reached by', async (context) => {
  const folder = await emptyFolder(context)
  await mkdir(join(folder, 'real'))
  await symlink(join(folder, 'real'), join(folder, 'link'))

  const [real, link, other] = [
    await open(context, join(folder, 'real')),
    await open(context, join(folder, 'link')),
    await open(context, join(folder, 'other')),
  ]

  assert.deepEqual(real, link)
  assert.notEqual(real.runtime, other.runtime)
})

test('leaves room for the paths of sockets', async (context) => {
  const { runtime } = await open(context, join(await emptyFolder(context), 'x'.repeat(200)), '/tmp')

  assert.ok(runtime.length < 50, runtime)
})

test('rejects a data folder that others may enter, unless it is empty', async (context) => {
  const folder = await emptyFolder(context)
  await chmod(folder, 0o755)
  await writeFile(join(folder, 'something'), '')

  await assert.rejects(openHostFolders({ dataFolder: folder, userRuntimeFolder: undefined }), (error) => {
    assert.ok(error instanceof StartError)
    assert.match(error.message, /chmod 700/)
    return true
  })
  await rm(join(folder, 'something'))
  assert.equal((await open(context, folder)).data, folder)
  assert.equal((await stat(folder)).mode & 0o777, 0o700)
})

test('accepts the root of a volume that belongs to it and is new', async (context) => {
  const folder = await emptyFolder(context)
  await mkdir(join(folder, 'lost+found'))
  await chmod(folder, 0o755)

  const { data } = await open(context, folder)

  assert.equal(data, folder)
  assert.equal((await stat(folder)).mode & 0o777, 0o700)
})

test('uses its own folder in the root of a volume that belongs to another user', {
  skip: !isRoot && 'takes two users',
}, async (context) => {
  const volume = await emptyFolder(context)
  await chmod(volume, 0o777)
  process.seteuid?.(54_321)

  const opened = await Promise.all([open(context, volume), open(context, volume)]).finally(() => process.seteuid?.(0))

  const [first, second] = opened
  assert.equal(first.data, join(volume, 'berth-data'))
  assert.deepEqual(second, first)
  const { mode, uid } = await stat(first.data)
  assert.deepEqual([mode & 0o777, uid], [0o700, 54_321])
})

test('leaves no runtime folder behind, unless it is in use', async (context) => {
  const folders = await open(context, join(await emptyFolder(context), 'data'))
  await mkdir(join(folders.runtime, 'm'))
  await mkdir(join(folders.runtime, 'egress'))
  const socket = createServer().listen(join(folders.runtime, 'egress', 'control.sock'))
  await once(socket, 'listening')
  // The state that a killed process leaves.
  await link(join(folders.runtime, 'egress', 'control.sock'), join(folders.runtime, 'egress', 'stale.sock'))

  await removeUnusedRuntimeFolder(folders)
  assert.equal(await exists(folders.runtime), true, 'somebody listens')
  socket.close()
  await once(socket, 'close')
  await mkdir(join(folders.runtime, 'm', 'brw'))
  await removeUnusedRuntimeFolder(folders)
  assert.equal(await exists(folders.runtime), true, 'there is a machine')
  await rmdir(join(folders.runtime, 'm', 'brw'))
  await removeUnusedRuntimeFolder(folders)

  assert.equal(await exists(folders.runtime), false)
})

test('rejects a data folder that is not a folder', async (context) => {
  const folder = await emptyFolder(context)
  await writeFile(join(folder, 'file'), '')

  const opened = openHostFolders({ dataFolder: join(folder, 'file'), userRuntimeFolder: undefined })

  await assert.rejects(opened, StartError)
})

test('uses the user’s own runtime folder, but not if it is a link', { skip: isRoot }, async (context) => {
  const folder = await emptyFolder(context)
  await mkdir(join(folder, 'run'))
  await symlink(join(folder, 'run'), join(folder, 'link'))

  const [own, link] = [
    await open(context, join(folder, 'data'), join(folder, 'run')),
    await open(context, join(folder, 'data'), join(folder, 'link')),
  ]

  assert.ok(own.runtime.startsWith(join(folder, 'run', 'berth')))
  assert.ok(link.runtime.startsWith(`/tmp/berth-${process.geteuid?.()}/`))
})

test('rejects a folder for sockets where another user has created a link', { skip: isRoot }, async (context) => {
  const folder = await emptyFolder(context)
  await mkdir(join(folder, 'run'))
  await symlink('/tmp', join(folder, 'run', 'berth'))

  const opened = openHostFolders({ dataFolder: join(folder, 'data'), userRuntimeFolder: join(folder, 'run') })

  await assert.rejects(opened, /belongs to another user or is not a folder/)
})
