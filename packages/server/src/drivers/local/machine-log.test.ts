import assert from 'node:assert/strict'
import { mkdtemp, open, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readLastLines, shortenLog } from './machine-log.ts'

async function logIn(context: TestContext, text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-test-'))
  context.after(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'machine.log'), text)
  return join(folder, 'machine.log')
}

test('reads the last twenty lines of a log', async (context) => {
  const log = await logIn(context, Array.from({ length: 50 }, (_, index) => `${index + 1}\n`).join(''))

  const lines = await readLastLines(log)

  assert.equal(lines, Array.from({ length: 20 }, (_, index) => `${index + 31}`).join('\n'))
})

test('reads nothing where there is no log', async () => {
  assert.equal(await readLastLines('/nowhere/machine.log'), '')
})

test('keeps the end of a log that is too large, and of later output', async (context) => {
  const log = await logIn(context, `${'noise\n'.repeat(1_000_000)}the end\n`)
  const machine = await open(log, 'a')

  await shortenLog(log)
  await machine.write('more\n')
  await machine.close()

  assert.ok((await stat(log)).size < 10_000)
  assert.match(await readLastLines(log), /noise\nthe end\nmore$/)
})

test('leaves a small log alone', async (context) => {
  const log = await logIn(context, 'one line\n')

  await shortenLog(log)

  assert.equal(await readLastLines(log), 'one line')
})
