import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { LifecycleEvents } from '../features/sessions/machines/lifecycle-events.ts'
import { MemoryWatch } from './watch-memory.ts'

const logger = createLogger({ name: 'test', level: 'silent', json: true })

/** Watches sessions whose machines have the same ids, and counts kills as `read` does. */
function watch(ids: readonly string[], read: (id: string) => Promise<number>) {
  const reported: string[] = []
  const options = {
    driver: { countMemoryKills: read },
    machines: { list: () => ids.map((id) => ({ id })), find: (id: string) => ({ id }) },
    telemetry: { reportMemoryKills: (id: string, count: number) => reported.push(`${id} ${count}`) },
    events: new LifecycleEvents(),
    logger,
  }
  return { reported, memoryWatch: new MemoryWatch(options as never) }
}

test('machines are read one after another, and several calls share a round', async () => {
  let [reading, most, reads] = [0, 0, 0]
  const { memoryWatch } = watch(['one', 'two', 'three'], async () => {
    reads += 1
    reading += 1
    most = Math.max(most, reading)
    await new Promise(setImmediate)
    reading -= 1
    return 0
  })

  await Promise.all([memoryWatch.checkAll(), memoryWatch.checkAll()])

  assert.deepEqual([most, reads], [1, 3])
})

test('a machine that does not respond, or fails, does not hide the kills of others', { timeout: 20_000 }, async () => {
  const answers: Readonly<Record<string, () => Promise<number>>> = {
    silent: () => new Promise(() => {}),
    broken: () => Promise.reject(new Error('as expected')),
    killed: async () => 2,
  }
  const { memoryWatch, reported } = watch(Object.keys(answers), (id) => answers[id]?.() ?? assert.fail(id))

  await memoryWatch.checkAll()

  assert.deepEqual(reported, ['killed 2'])
})
