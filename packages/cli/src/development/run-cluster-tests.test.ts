import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { missingPrograms } from './run-cluster-tests.ts'

async function folderWith(context: TestContext, names: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-cluster-tests-'))
  context.after(() => rm(folder, { recursive: true }))
  for (const name of names) await writeFile(join(folder, name), '')
  return folder
}

test('reports missing programs of a node, and what is missing to build them', async (context) => {
  const cache = await folderWith(context, ['kubelet'])
  const tools = await folderWith(context, ['gcc'])

  const missing = (await missingPrograms(cache, tools)) ?? ''

  assert.match(missing, /has no kube-apiserver, .*containerd/)
  assert.doesNotMatch(missing, /kubelet|gcc/)
  assert.match(missing, /and go to build them/)
})

test('reports nothing if the programs can be built', async (context) => {
  const cache = await folderWith(context, [])
  const tools = [await folderWith(context, ['gcc']), await folderWith(context, ['go'])]

  assert.equal(await missingPrograms(cache, tools.join(':')), undefined)
})
