import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { exists } from '@berth/runtime/files/exists.ts'
import { findOwnProcesses } from './own-processes.ts'
import { Trash } from './trash.ts'

const manyFiles = process.env.BERTH_DEEP === '1' ? 40_000 : 2_000

async function makeFolder(context: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), 'berth-trash-'))
  context.after(() => rm(folder, { recursive: true, force: true }))
  const trashFolder = join(folder, 'trash')
  return { folder, trashFolder, session: join(folder, 'session') }
}

function fill(folder: string, files: number): void {
  const script =
    'for (1 .. $ARGV[1]) { mkdir "$ARGV[0]/" . int $_ / 1000; open F, ">", "$ARGV[0]/" . int($_ / 1000) . "/$_" or die }'
  execFileSync('perl', ['-e', script, folder, String(files)])
}

test('a folder of many files is gone immediately, and nothing waits for its removal', {
  timeout: 120_000,
}, async (context) => {
  const { folder, trashFolder, session } = await makeFolder(context)
  await mkdir(session)
  fill(session, manyFiles)
  await writeFile(join(folder, 'other'), 'other')
  const trash = await Trash.open(trashFolder)
  context.after(() => trash.close())

  const start = performance.now()
  await trash.discard(session)
  const discarded = performance.now() - start
  const toRemove = await readdir(trashFolder)
  let isEmptied = false
  const emptied = trash.emptied().then(() => {
    isEmptied = true
  })
  const waits: number[] = []
  while (!isEmptied) {
    const asked = performance.now()
    await readFile(join(folder, 'other'))
    waits.push(performance.now() - asked)
  }

  await emptied
  // On a busy machine everything takes longer, the removal too.
  const limit = Math.max(500, (performance.now() - start) / 2)
  assert.equal(toRemove.length, 1)
  assert.ok(waits.length > 3, 'the removal takes longer than a few reads')
  assert.ok(discarded < limit, `to discard it took ${discarded} ms, of ${limit}`)
  assert.ok(Math.max(...waits) < limit, `another file was read in ${Math.max(...waits)} ms, of ${limit}`)
  assert.deepEqual(await readdir(trashFolder), [])
})

test('the trash of a stopped server is emptied by the next, whose start does not wait for it', {
  timeout: 120_000,
}, async (context) => {
  const { trashFolder, session } = await makeFolder(context)
  await mkdir(session)
  fill(session, manyFiles)
  const first = await Trash.open(trashFolder)
  await first.discard(session)
  await first.close()
  const left = await readdir(trashFolder)
  const stillAtWork = await findOwnProcesses((args) => args.some((argument) => argument.startsWith(trashFolder)))

  const start = performance.now()
  const next = await Trash.open(trashFolder)
  const opened = performance.now() - start
  context.after(() => next.close())
  const toRemove = await readdir(trashFolder)

  assert.deepEqual(toRemove, left)
  assert.equal(left.length, 1)
  assert.deepEqual(stillAtWork, [])
  await next.emptied()
  const limit = Math.max(500, (performance.now() - start) / 2)
  assert.ok(opened < limit, `the start took ${opened} ms, of ${limit}`)
  assert.deepEqual(await readdir(trashFolder), [])
})

test('removes protected files, unusual names and links, and follows no link', async (context) => {
  const { folder, trashFolder, session } = await makeFolder(context)
  await mkdir(join(session, 'closed', 'inner'), { recursive: true })
  await writeFile(join(session, 'closed', 'inner', '-rf\n'), '')
  await mkdir(join(folder, 'bystander'))
  await writeFile(join(folder, 'bystander', 'file'), 'must stay')
  await symlink(join(folder, 'bystander'), join(session, 'closed', 'link'))
  await chmod(join(session, 'closed'), 0)
  const trash = await Trash.open(trashFolder)
  context.after(() => trash.close())

  await trash.discard(session)
  await trash.discard(join(folder, 'nothing'))
  await trash.emptied()

  assert.deepEqual(await readdir(trashFolder), [])
  assert.equal(await exists(session), false)
  assert.deepEqual(await readdir(join(folder, 'bystander')), ['file'])
})
