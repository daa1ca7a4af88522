import assert from 'node:assert/strict'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { getAgentState } from '@berth/contract/agent/agent-endpoints.ts'
import type { MachineId } from '@berth/contract/common/ids.ts'
import { ask } from '../testing/ask.ts'
import { machineSpec } from '../testing/machines/machine-spec.ts'
import type { Driver, Machine } from './driver.ts'

/**
 * What a driver needs for its tests: an environment for machines that is empty at first and that only this test uses.
 */
export interface DriverTestbed {
  /** Each call opens another driver for the same machines, like a restarted server. */
  openDriver(): Promise<Driver>
  /** Ends a machine without a driver, like a crash. */
  killMachine(machineId: MachineId): Promise<void>
  /**
   * Lists everything that exists because of a machine: processes, sockets, folders and other resources of its driver.
   */
  remains(): Promise<readonly string[]>
  close(): Promise<void>
}

const never = new AbortController().signal

/** The behaviour that every driver must have. */
export function driverSuite(name: string, openTestbed: () => Promise<DriverTestbed>): void {
  const check = (sentence: string, body: (testbed: DriverTestbed, context: TestContext) => Promise<void>) =>
    test(`${name}: ${sentence}`, async (context) => {
      const testbed = await openTestbed()
      context.after(() => testbed.close())
      await body(testbed, context)
    })

  check('has no problem', async (testbed) => {
    const driver = await testbed.openDriver()

    const problem = await driver.problem()

    assert.equal(problem, undefined)
    assert.deepEqual(await testbed.remains(), [])
  })

  check('starts a machine whose agent responds', async (testbed) => {
    const driver = await testbed.openDriver()
    const spec = machineSpec()

    const machine = await driver.start(spec, never)

    assert.equal(machine.id, spec.id)
    assert.equal(await answers(machine), true)
    assert.equal(await hasEnded(machine), false)
  })

  check('leaves nothing of a stopped machine', async (testbed) => {
    const driver = await testbed.openDriver()
    const machine = await driver.start(machineSpec(), never)
    assert.notDeepEqual(await testbed.remains(), [])

    await driver.stop(machine.id)

    await machine.ended
    assert.equal(await answers(machine), false)
    assert.deepEqual(await testbed.remains(), [])
    assert.deepEqual(await driver.list(), [])
  })

  check('accepts a second stop, a concurrent one, and one for an unknown machine', async (testbed) => {
    const driver = await testbed.openDriver()
    const { id } = await driver.start(machineSpec(), never)

    await Promise.all([driver.stop(id), driver.stop(id)])
    await driver.stop(id)
    await driver.stop(machineSpec().id)

    assert.deepEqual(await testbed.remains(), [])
  })

  check('rejects a second machine with the same id and leaves the first alone', async (testbed) => {
    const driver = await testbed.openDriver()
    const spec = machineSpec()
    const machine = await driver.start(spec, never)

    await assert.rejects(driver.start(spec, never))

    assert.equal(await answers(machine), true)
    assert.equal((await driver.list()).length, 1)
  })

  check('stops a machine that is still starting', async (testbed) => {
    const driver = await testbed.openDriver()
    const spec = machineSpec()
    const rejection = assert.rejects(driver.start(spec, never))

    await driver.stop(spec.id)

    assert.deepEqual(await testbed.remains(), [])
    await rejection
  })

  check('leaves nothing of a start that was aborted at any time', async (testbed) => {
    const driver = await testbed.openDriver()
    const aborted = new AbortController()
    aborted.abort(new Error('it is not needed any more'))
    await assert.rejects(driver.start(machineSpec(), aborted.signal), /not needed any more/)

    for (const milliseconds of [0, 2, 5, 10, 15, 20, 30, 40, 60]) {
      const signal = AbortSignal.timeout(milliseconds)
      const outcome = await driver.start(machineSpec(), signal).catch((error: unknown) => error)
      // A fast driver may have started by then.
      if (outcome === signal.reason) assert.deepEqual(await testbed.remains(), [], `after ${milliseconds} ms`)
      else await driver.stop((outcome as Machine).id)
    }

    assert.deepEqual(await testbed.remains(), [])
  })

  check('starts many machines concurrently and independently', async (testbed) => {
    const driver = await testbed.openDriver()

    const machines = await Promise.all(Array.from({ length: 5 }, () => driver.start(machineSpec(), never)))

    assert.deepEqual(await Promise.all(machines.map(answers)), [true, true, true, true, true])
    const listed = await driver.list()
    assert.deepEqual(listed.toSorted(), machines.map((machine) => machine.id).toSorted())
    await Promise.all(machines.map((machine) => driver.stop(machine.id)))
    assert.deepEqual(await testbed.remains(), [])
  })

  check('finds and stops machines that another driver started', async (testbed) => {
    const [first, second] = [await testbed.openDriver(), await testbed.openDriver()]
    const machine = await first.start(machineSpec(), never)

    const listed = await second.list()
    const found = await second.adopt(machine.id)

    assert.deepEqual(listed, [machine.id])
    assert.ok(found)
    assert.equal(found.id, machine.id)
    assert.deepEqual(found.egressSocket, machine.egressSocket)
    assert.equal(await answers(found), true)
    assert.equal(await hasEnded(found), false)
    await second.stop(found.id)
    await Promise.all([machine.ended, found.ended])
    assert.deepEqual(await testbed.remains(), [])
  })

  check('reports the end of a killed machine, its own or another driver’s', async (testbed) => {
    const [first, second] = [await testbed.openDriver(), await testbed.openDriver()]
    const machine = await first.start(machineSpec(), never)
    const adopted = await second.adopt(machine.id)

    await testbed.killMachine(machine.id)

    await Promise.all([machine.ended, adopted?.ended])
    assert.equal(await answers(machine), false)
  })

  check('lists a machine that has died until it is stopped', async (testbed) => {
    const driver = await testbed.openDriver()
    const { id } = await driver.start(machineSpec(), never)
    await testbed.killMachine(id)
    const next = await testbed.openDriver()

    const listed = await next.list()
    const found = await next.adopt(id)

    assert.deepEqual(listed, [id])
    assert.ok(found)
    await found.ended
    await driver.stop(id)
    assert.deepEqual(await driver.list(), [])
    assert.deepEqual(await testbed.remains(), [])
  })

  check('does not adopt an unknown machine', async (testbed) => {
    const driver = await testbed.openDriver()
    const machine = await driver.start(machineSpec(), never)

    assert.equal(await driver.adopt(machineSpec().id), undefined)

    await driver.stop(machine.id)
    assert.equal(await (await testbed.openDriver()).adopt(machine.id), undefined)
  })

  check('opens any number of separate connections to an agent', async (testbed) => {
    const driver = await testbed.openDriver()
    const machine = await driver.start(machineSpec(), never)

    const connections = await Promise.all([machine.connect(), machine.connect()])
    connections[0].destroy()

    connections[1].end('GET /state HTTP/1.1\r\nhost: agent\r\nconnection: close\r\n\r\n')
    assert.match(await text(connections[1]), /^HTTP\/1\.1 200 /)
    await driver.stop(machine.id)
    await assert.rejects(machine.connect(), (error: NodeJS.ErrnoException) =>
      ['ENOENT', 'ECONNREFUSED'].includes(error.code ?? ''),
    )
  })

  check('freezes and thaws a machine', async (testbed, context) => {
    const driver = await testbed.openDriver()
    if (!driver.capabilities.canFreeze) return context.skip('this driver cannot freeze')
    const [frozen, other] = [await driver.start(machineSpec(), never), await driver.start(machineSpec(), never)]

    assert.equal(await driver.isFrozen(frozen.id), false)
    await driver.freeze(frozen.id)
    assert.equal(await driver.isFrozen(frozen.id), true)
    assert.equal(await (await testbed.openDriver()).isFrozen(frozen.id), true, 'another driver sees it too')
    assert.equal(await driver.isFrozen(other.id), false)
    let hasAnswered = false
    const answer = answers(frozen).finally(() => {
      hasAnswered = true
    })
    for (let round = 0; round < 5; round++) assert.equal(await answers(other), true)
    const hasAnsweredWhileFrozen = hasAnswered
    await driver.thaw(frozen.id)

    assert.equal(await answer, true)
    assert.equal(hasAnsweredWhileFrozen, false)
    assert.equal(await driver.isFrozen(frozen.id), false)
    assert.equal(await driver.isFrozen(machineSpec().id), false)
  })

  check('accepts a second freeze and a second thaw', async (testbed, context) => {
    const driver = await testbed.openDriver()
    if (!driver.capabilities.canFreeze) return context.skip('this driver cannot freeze')
    const machine = await driver.start(machineSpec(), never)

    await driver.thaw(machine.id)
    await driver.freeze(machine.id)
    await driver.freeze(machine.id)
    await driver.thaw(machine.id)
    await driver.thaw(machine.id)

    assert.equal(await answers(machine), true)
  })

  check('stops a frozen machine', async (testbed, context) => {
    const driver = await testbed.openDriver()
    if (!driver.capabilities.canFreeze) return context.skip('this driver cannot freeze')
    const machine = await driver.start(machineSpec(), never)
    await driver.freeze(machine.id)

    await driver.stop(machine.id)

    await machine.ended
    assert.deepEqual(await testbed.remains(), [])
  })

  check('has no last lines of an unknown machine', async (testbed) => {
    const driver = await testbed.openDriver()

    const lines = await driver.lastLines(machineSpec().id)

    assert.equal(lines, '')
  })
}

async function answers(machine: Machine): Promise<boolean> {
  return ask(machine, getAgentState.path).then(
    () => true,
    () => false,
  )
}

/** Checks without waiting: an end that has settled wins over a promise that settles in this turn. */
async function hasEnded(machine: Machine): Promise<boolean> {
  return Promise.race([machine.ended.then(() => true), new Promise<false>((resolve) => setImmediate(resolve, false))])
}
