import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { type TestContext, test } from 'node:test'
import { checkoutFolder } from '../output.ts'
import { writeBatches } from './test-batches.ts'

async function makeFolder(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-batches-'))
  context.after(() => rm(folder, { recursive: true }))
  return folder
}

test('every file is in one batch, and no batch is empty', async (context) => {
  const folder = await makeFolder(context)

  assert.equal((await writeBatches(['a', 'b', 'c', 'd', 'e'], { count: 2, folder })).length, 2)
  assert.equal((await writeBatches(['a'], { count: 2, folder })).length, 1)
})

test('files of a batch run one after the other with their own hooks, and a failure is that of its test', async (context) => {
  const folder = await makeFolder(context)
  const write = async (name: string, lines: string) => {
    const path = join(folder, name)
    await writeFile(path, `import { after, before, test } from 'node:test'\n${lines}`)
    return relative(checkoutFolder, path)
  }
  const files = [
    await write(
      'first.mjs',
      `globalThis.held = 'first'
      before(async () => { await 0; globalThis.hasBegun = true })
      after(async () => { await 0; globalThis.held = undefined })
      test('passes', () => { if (!globalThis.hasBegun) throw new Error('too early') })
      test('fails', () => { throw new Error('as expected') })`,
    ),
    await write('broken.mjs', `import './absent.mjs'`),
    await write(
      'last.mjs',
      `const seen = globalThis.held\ntest('sees nothing', () => { if (seen) throw new Error(seen) })`,
    ),
  ]

  const batches = await writeBatches(files, { count: 1, folder })

  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const args = ['--test', '--test-reporter', 'tap', ...batches]
  const { stdout } = spawnSync(process.execPath, args, { cwd: folder, env, encoding: 'utf8' })
  const outcomes = stdout.match(/(?<=^ *)(not )?ok .*/gm)?.map((line) => line.replace(/ \d+ - /, ' '))
  const [first, broken, last] = files
  assert.deepEqual(outcomes, [
    'ok passes',
    'not ok fails',
    `not ok ${first}`,
    `not ok ${broken}`,
    'ok sees nothing',
    `ok ${last}`,
  ])
})
