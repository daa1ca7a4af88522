import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { bundleAgent } from './agent-bundle.ts'

test('makes one file of each program, named after what is in it, and keeps only those', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-test-'))
  context.after(() => rm(folder, { recursive: true }))
  const entry = join(folder, 'main.ts')
  await writeFile(join(folder, 'greeting.ts'), "export const greeting: string = 'good day'")
  await writeFile(entry, "import { greeting } from './greeting.ts'\nconsole.log(greeting, typeof require)")
  const other = join(folder, 'other.ts')
  await writeFile(other, "console.log('other')")

  const [first, otherFirst] = await bundleAgent([entry, other] as const, join(folder, 'agent'))
  const { stdout } = await promisify(execFile)(process.execPath, [first])
  await writeFile(join(folder, 'greeting.ts'), "export const greeting: string = 'good night'")
  const [second, otherSecond] = await bundleAgent([entry, other] as const, join(folder, 'agent'))

  assert.equal(stdout, 'good day function\n')
  assert.notEqual(second, first)
  assert.equal(otherSecond, otherFirst)
  assert.deepEqual((await readdir(join(folder, 'agent'))).sort(), [basename(second), basename(otherSecond)].sort())
  assert.equal((await stat(second)).mode & 0o777, 0o644)
})
