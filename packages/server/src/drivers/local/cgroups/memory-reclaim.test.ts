import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { findReclaimObstacle, reclaimMemory, restoreLimit } from './memory-reclaim.ts'

const folder = await mkdtemp(join(tmpdir(), 'berth-reclaim-'))
after(() => rm(folder, { recursive: true }))

const gibibyte = String(1024 ** 3)
const head = 'Filename\tType\tSize\tUsed\tPriority\n'
const someSwap = `${head}/dev/zram0\tpartition\t1048576\t0\t100\n`

async function write(files: Readonly<Record<string, string>>): Promise<void> {
  await rm(folder, { recursive: true })
  await mkdir(folder)
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
}

const read = (name: string) => readFile(join(folder, name), 'utf8')

for (const [what, version, files, swaps, obstacle] of [
  ['with swap and version 1', 1, ['memory.memsw.limit_in_bytes'], someSwap, undefined],
  ['with swap and version 2', 2, ['memory.reclaim'], someSwap, undefined],
  ['without swap', 2, ['memory.reclaim'], head, 'no swap'],
  ['with a kernel that has no swap', 2, ['memory.reclaim'], '', 'no swap'],
  ['with a kernel that does not count swap', 1, [], someSwap, 'no support'],
  ['with an old kernel', 2, [], someSwap, 'no support'],
] as const) {
  test(`${what}, memory ${obstacle === undefined ? 'can' : 'cannot'} be reclaimed`, async () => {
    await write(Object.fromEntries(files.map((name) => [name, ''])))

    const found = await findReclaimObstacle({ version, folder }, swaps)

    assert.equal(found, obstacle)
  })
}

test('without a control group, memory cannot be reclaimed', async () => {
  assert.equal(await findReclaimObstacle(undefined, someSwap), 'no control group')
})

test('version 2 reclaims all memory, and a running machine may not swap', async () => {
  await write({
    'memory.current': '5000000\n',
    'memory.max': `${gibibyte}\n`,
    'memory.swap.max': '0',
    'memory.reclaim': '',
  })

  await reclaimMemory({ version: 2, folder })

  assert.equal(await read('memory.reclaim'), '5000000')
  assert.equal(await read('memory.swap.max'), '0')
})

test('the limit of version 1 is restored afterwards, also after a server that was killed meanwhile', async () => {
  const limits = { 'memory.limit_in_bytes': gibibyte, 'memory.memsw.limit_in_bytes': gibibyte }
  await write({ 'memory.usage_in_bytes': '5000000', ...limits })

  await reclaimMemory({ version: 1, folder })

  assert.equal(await read('memory.limit_in_bytes'), gibibyte)
  await writeFile(join(folder, 'memory.limit_in_bytes'), '1250000')
  await restoreLimit(folder)
  assert.equal(await read('memory.limit_in_bytes'), gibibyte)
})
