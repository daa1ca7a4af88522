import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { test } from 'node:test'
import { checkoutFolder } from '../output.ts'
import { writeSharedModule } from './shared-module.ts'

test('files that share a process run one after the other with their own hooks, and a failure is that of its test', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-shared-'))
  context.after(() => rm(folder, { recursive: true }))
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

  const module = await writeSharedModule(files, join(folder, 'shared.test.mjs'))

  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const args = ['--test', '--test-reporter', 'tap', module]
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
