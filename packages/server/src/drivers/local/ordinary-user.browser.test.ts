import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

/** A user without a name, groups or capabilities. */
const uid = 54_321

const files = [
  '../registered-drivers.browser',
  'machine-isolation.browser',
  'machine-escape.browser',
  'machine-lifecycle.browser',
  'machine-bounds.browser',
  '../../host/trash',
  '../../host/host-folders',
].map((name) => fileURLToPath(new URL(`${name}.test.ts`, import.meta.url)))

test('the same tests pass for an ordinary user', {
  skip: process.geteuid?.() !== 0 && 'these tests run as an ordinary user already',
}, async (context) => {
  const home = await mkdtemp(join(tmpdir(), 'berth-test-'))
  context.after(() => rm(home, { recursive: true }))
  context.after(() => rm(`/tmp/berth-${uid}`, { recursive: true, force: true }))
  await chown(home, uid, uid)

  const identity = [
    `--reuid=${uid}`,
    `--regid=${uid}`,
    '--clear-groups',
    '--bounding-set=-all',
    '--inh-caps=-all',
    '--',
  ]
  // The time to remove many files does not depend on the user.
  const options = [
    '--test-isolation=none',
    '--test-reporter=spec',
    '--test-skip-pattern=/40,000 files|trash of a stopped server/',
  ]
  const args = [...identity, process.execPath, '--test', ...options, ...files]
  const tests = spawn('/usr/bin/setpriv', args, {
    cwd: home,
    env: { HOME: home, PATH: '/usr/bin:/bin', NODE_COMPILE_CACHE: await compileCache(home) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const report = Promise.all([new Response(tests.stdout as never).text(), new Response(tests.stderr as never).text()])
  const [exitCode] = await once(tests, 'exit')

  assert.equal(exitCode, 0, (await report).join('\n'))
  assert.match((await report)[0], /pass [1-9]\d/)
})

/** A folder beside the cache of the other tests, which this user cannot write to. It saves the next run from compiling. */
async function compileCache(home: string): Promise<string> {
  const folder = join(process.env.NODE_COMPILE_CACHE ?? home, 'ordinary-user')
  await mkdir(folder, { recursive: true })
  await chown(folder, uid, uid)
  return folder
}
