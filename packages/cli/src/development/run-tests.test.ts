import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { checkoutFolder } from '../output.ts'
import { findTestFiles, stagesOf } from './run-tests.ts'

const self = 'packages/cli/src/development/run-tests.test.ts'

test('without names, the tests of all packages and the end-to-end tests are found', async () => {
  const files = await findTestFiles([])

  assert.ok(files.includes(self))
  assert.ok(files.includes('e2e/openapi-conformance.test.ts'))
  assert.ok(!files.some((file) => file.includes('node_modules')))
})

test('a test is named by its path, a folder above it, or a part of its path', async () => {
  for (const part of [import.meta.filename, 'development/run-t']) {
    assert.deepEqual(await findTestFiles([part]), [self])
  }
  assert.ok((await findTestFiles([import.meta.dirname])).every((file) => dirname(file) === dirname(self)))
})

test('the checkout itself selects all of its tests', async () => {
  assert.deepEqual(await findTestFiles([checkoutFolder]), await findTestFiles([]))
})

test('several names are combined', async () => {
  const files = await findTestFiles(['run-tests', join(checkoutFolder, 'e2e')])

  assert.ok(files.includes(self))
  assert.ok(files.includes('e2e/openapi-conformance.test.ts'))
})

test('a name that matches no test is an error, even beside others', async () => {
  await assert.rejects(findTestFiles(['run-tests', 'no-such-thing']), /no test file matches no-such-thing/)
})

test('every file runs in one stage, and only files that use up the machine run alone', async () => {
  const files = await findTestFiles([])

  const stages = stagesOf(files, new Set(files.filter((file) => /^e2e.[a-m]/.test(file))), 2)

  assert.deepEqual(stages.flatMap((stage) => [...stage.files, ...stage.batched]).toSorted(), files)
  assert.deepEqual(
    stages.map(({ concurrency }) => concurrency),
    [5, 4, 1],
  )
  const alone = stages.at(-1)?.files ?? []
  assert.deepEqual(alone, [
    'e2e/kubernetes-node.test.ts',
    'packages/server/src/drivers/local/machine-bounds.browser.test.ts',
  ])
  const withoutBrowsers = stages[0]?.batched ?? []
  assert.ok(withoutBrowsers.includes('packages/agent/src/computer/keys.test.ts'))
  assert.ok(!withoutBrowsers.some((file) => /^e2e[/]|[.]browser[.]/.test(file)))
})

test('a failed file runs again, and is flaky when it passes then', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-flaky-'))
  t.after(() => rm(folder, { recursive: true }))
  const passing = writeTest(folder, 'passing', '')
  const flaky = writeTest(
    folder,
    'flaky',
    `appendFileSync(${JSON.stringify(join(folder, 'runs'))}, '.')
    assert.ok(statSync(${JSON.stringify(join(folder, 'runs'))}).size > 1)`,
  )
  const broken = writeTest(folder, 'broken', 'assert.fail()')

  assert.deepEqual(runFiles([passing, flaky], true), { passed: 2, failed: 0, skipped: 0, flaky: [flaky] })
  assert.partialDeepStrictEqual(runFiles([passing, broken], true), { passed: 1, failed: 1, flaky: [] })
  assert.partialDeepStrictEqual(runFiles([broken], false), { passed: 0, failed: 1, flaky: [] })
})

/** By its name it needs no database, which the run would start otherwise. */
function writeTest(folder: string, name: string, body: string): string {
  const file = join(folder, `${name}.browser.test.ts`)
  const imports = "import assert from 'node:assert'\nimport { appendFileSync, statSync } from 'node:fs'\n"
  writeFileSync(file, `${imports}import { test } from 'node:test'\ntest('${name}', () => { ${body} })`)
  return relative(checkoutFolder, file)
}

/** In a process of its own: the test runner runs no files for a test. */
function runFiles(files: readonly string[], repeatFailed: boolean) {
  const folder = mkdtempSync(join(tmpdir(), 'berth-run-'))
  const script = join(folder, 'run.mjs')
  writeFileSync(
    script,
    `import { runTestFiles } from ${JSON.stringify(join(import.meta.dirname, 'run-tests.ts'))}
    const counts = await runTestFiles(${JSON.stringify(files)}, { repeatFailed: ${repeatFailed} })
    console.log('\\n' + JSON.stringify(counts))`,
  )
  const { NODE_TEST_CONTEXT: _outer, ...env } = process.env
  const output = execFileSync(process.execPath, [script], { env, encoding: 'utf8' })
  rmSync(folder, { recursive: true })
  return JSON.parse(output.trimEnd().split('\n').at(-1) ?? '')
}
