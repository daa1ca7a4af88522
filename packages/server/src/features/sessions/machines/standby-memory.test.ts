import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { mock, test } from 'node:test'
import { newId } from '@berth/contract/common/ids.ts'
import { StandbyMachine } from './standby-machine.ts'

/** A machine that an earlier server froze, and the calls of its driver. */
function frozenMachine() {
  const asked: string[] = []
  const returned: number[] = []
  const standby = new StandbyMachine({
    machine: {
      id: newId('machine', new Date()),
      connect: async () => new Duplex({ read() {} }),
      egressSocket: { path: '', mode: 0 },
      ended: new Promise(() => {}),
    },
    driver: {
      freeze: async () => void asked.push('freeze'),
      thaw: async () => void asked.push('thaw'),
      reclaimMemory: async () => asked.push('give back memory'),
    },
    afterMilliseconds: 5_000,
    isFrozen: true,
    mayStandBy: () => true,
    onChange: () => {},
    onMemoryReturned: (bytes) => returned.push(bytes),
    onFailure: (error) => assert.fail(error),
  })
  return { standby, asked, returned }
}

test('the memory of a machine that is frozen for a minute is reclaimed, once', async (context) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  context.after(() => mock.timers.reset())
  const { asked, returned } = frozenMachine()

  mock.timers.tick(59_999)
  assert.deepEqual(asked, [])
  mock.timers.tick(1)
  await Promise.resolve()
  mock.timers.tick(600_000)

  assert.deepEqual(asked, ['give back memory'])
  assert.deepEqual(returned, [1])
})

for (const [what, interrupt] of [
  ['is used before', (standby: StandbyMachine) => standby.wake()],
  ['is left to another server', (standby: StandbyMachine) => standby.close()],
] as const) {
  test(`a machine that ${what} keeps its memory`, async (context) => {
    mock.timers.enable({ apis: ['setTimeout'] })
    context.after(() => mock.timers.reset())
    const { standby, asked } = frozenMachine()

    mock.timers.tick(30_000)
    await interrupt(standby)
    mock.timers.tick(600_000)

    assert.ok(!asked.includes('give back memory'))
  })
}
