import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { bundlePrograms } from './program-bundle.ts'

const run = promisify(execFile)

test('bundles the programs into one folder, named after its content, and keeps folders in use', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-test-'))
  context.after(() => rm(folder, { recursive: true }))
  const programs = { entries: { agent: join(folder, 'main.ts'), other: join(folder, 'other.ts') }, packages: ['ws'] }
  const greet = (text: string) => writeFile(join(folder, 'greeting.ts'), `export const greeting: string = '${text}'`)
  await writeFile(
    programs.entries.agent,
    "const { greeting } = await import('./greeting.ts')\nimport ws from 'ws'\nconsole.log(greeting, typeof require, typeof ws)",
  )
  await writeFile(programs.entries.other, "console.log('other')")
  const target = join(folder, 'agent')
  const cache = join(folder, 'cache')

  await greet('good day')
  const first = await bundlePrograms(programs, target, cache)
  assert.equal(await bundlePrograms(programs, target, cache), first)
  const { stdout } = await run(process.execPath, [join(first, 'agent.mjs')])
  // Looks like a machine that uses the program.
  const user = spawn('tail', ['-f', join(first, 'agent.mjs')])
  await once(user, 'spawn')
  await greet('good night')
  const second = await bundlePrograms(programs, target, cache)

  assert.equal(stdout, 'good day function function\n')
  assert.notEqual(second, first)
  assert.deepEqual((await readdir(target)).sort(), [basename(first), basename(second)].sort())
  assert.equal((await stat(join(second, 'agent.mjs'))).mode & 0o777, 0o644)
  assert.equal((await stat(join(second, 'node_modules/ws'))).mode & 0o777, 0o755)

  user.kill()
  await once(user, 'close')
  await bundlePrograms(programs, target, cache)
  assert.deepEqual(await readdir(target), [basename(second)])
})

test('bundles again only after a change, also for another data folder', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-test-'))
  context.after(() => rm(folder, { recursive: true }))
  const programs = { entries: { agent: join(folder, 'main.ts') }, packages: ['ws'] }
  const cache = join(folder, 'cache')
  const cached = async () => join(cache, (await readdir(cache))[0] ?? '')
  const bundleInto = async (name: string) => basename(await bundlePrograms(programs, join(folder, name), cache))
  await writeFile(programs.entries.agent, "console.log('one')")

  const first = await bundleInto('first')
  const { ino } = await stat(await cached())
  const again = await bundleInto('second')

  assert.equal(again, first)
  assert.equal((await stat(await cached())).ino, ino)

  await truncate(join(await cached(), 'agent.mjs'))
  assert.equal(await bundleInto('third'), first)

  await writeFile(programs.entries.agent, "console.log('two')")
  assert.notEqual(await bundleInto('fourth'), first)
})

test('bundles without a cache if none can be written', async (context) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-test-'))
  context.after(() => rm(folder, { recursive: true }))
  const programs = { entries: { agent: join(folder, 'main.ts') }, packages: ['ws'] }
  await writeFile(programs.entries.agent, "console.log('one')")

  const path = await bundlePrograms(programs, join(folder, 'agent'), join(programs.entries.agent, 'cache'))

  assert.equal((await stat(join(path, 'agent.mjs'))).isFile(), true)
})
