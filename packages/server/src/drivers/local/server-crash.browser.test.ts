import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { newId } from '@berth/contract/common/ids.ts'
import { LocalTestbed } from '../../testing/machines/local-testbed.ts'
import type { LocalDriver } from './local-driver.ts'

const doomedServer = fileURLToPath(new URL('../../testing/machines/doomed-server.ts', import.meta.url))
/** More than the number of steps of a start and a stop. */
const manySteps = 200

test('a server that is killed before any step leaves nothing that the next one cannot remove', async (context) => {
  const testbed = await LocalTestbed.open()
  context.after(() => testbed.close())
  const nextServer = await testbed.openDriver()

  let step = 0
  let outcome: Outcome = 'killed'
  while (outcome === 'killed') {
    step += 1
    assert.ok(step < manySteps, 'a start and a stop come to an end')
    outcome = await runUntil(testbed, step, 'never')
    await removeAll(nextServer)
    assert.deepEqual(await testbed.remains(), [], `killed before step ${step}`)
  }

  assert.ok(step > 20, `a start and a stop have ${step} steps`)
})

test('a server that is killed at any time of a start leaves nothing that the next one cannot remove', async (context) => {
  const testbed = await LocalTestbed.open()
  context.after(() => testbed.close())
  const nextServer = await testbed.openDriver()

  for (const milliseconds of [0, 4, 8, 12, 16, 24, 32, 48]) {
    await runUntil(testbed, manySteps, milliseconds)
    await removeAll(nextServer)

    assert.deepEqual(await testbed.remains(), [], `killed ${milliseconds} ms after the spawn`)
  }
})

type Outcome = 'killed' | 'came to its end'

async function runUntil(
  { folders }: LocalTestbed,
  step: number,
  millisecondsAfterSpawn: number | 'never',
): Promise<Outcome> {
  const args = [doomedServer, folders.data, newId('machine', new Date()), String(step), String(millisecondsAfterSpawn)]
  const server = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const [exitCode, signal] = (await once(server, 'exit')) as [number | null, NodeJS.Signals | null]
  assert.ok(exitCode === 0 || signal === 'SIGKILL', `the server ended by itself with ${exitCode}`)
  return signal === null ? 'came to its end' : 'killed'
}

async function removeAll(driver: LocalDriver): Promise<void> {
  for (const machineId of await driver.list()) await driver.stop(machineId)
}
