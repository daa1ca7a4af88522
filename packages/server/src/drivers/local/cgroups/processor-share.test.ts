import assert from 'node:assert/strict'
import { access, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { findHierarchies } from './cgroup-hierarchies.ts'
import { Cgroups } from './cgroups.ts'

/* Uses the real groups of this host, if berth can create any. */

const hierarchies = await findHierarchies()
const hierarchy = hierarchies.find(({ controllers }) => controllers.includes('cpu'))
const shareFile = hierarchy?.version === 1 ? 'cpu.shares' : 'cpu.weight'

test('a machine of the reserve has idle priority until it is claimed, and then the same share as others', async (context) => {
  if (!hierarchy) return context.skip('no group that counts the processor')
  const prefix = `berth-test-${process.pid}`
  const cgroups = new Cgroups(hierarchies, prefix)
  const folder = join(hierarchy.folder, `${prefix}-one`)
  const read = async (file: string) => (await readFile(join(folder, file), 'utf8')).trim()
  try {
    await cgroups.open('one', { memoryBytes: 2 ** 28, tasks: 10 })
    const share = await read(shareFile)
    await cgroups.remove('one')
    await cgroups.open('one', { memoryBytes: 2 ** 28, tasks: 10, isLow: true })
    assert.ok(Number(await read(shareFile)) < Number(share))
    const hasIdle = await access(join(folder, 'cpu.idle')).then(
      () => true,
      () => false,
    )

    cgroups.makeIdle('one')
    if (hasIdle) assert.equal(await read('cpu.idle'), '1')
    cgroups.raiseShare('one')

    if (hasIdle) assert.equal(await read('cpu.idle'), '0')
    assert.equal(await read(shareFile), share)
    cgroups.raiseShare('one')
    assert.equal(await read(shareFile), share, 'again, as a recovery does')
  } finally {
    await cgroups.remove('one')
  }
  assert.doesNotThrow(() => cgroups.makeIdle('one'), 'a machine that has gone')
})
