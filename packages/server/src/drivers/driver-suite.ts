import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { getAgentState } from '@berth/contract/agent/agent-endpoints.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { ask } from '../testing/ask.ts'
import { machineSpec } from '../testing/machine-spec.ts'
import type { Driver, Machine } from './driver.ts'

/** What a driver needs to be tried: a place for machines that is empty at first and that only this test uses. */
export interface DriverGround {
  /** Each call opens another driver over the same machines, as a restarted server does. */
  openDriver(): Promise<Driver>
  /** Ends a machine past all drivers, as a crash does. */
  killMachine(sessionId: SessionId): Promise<void>
  /** Names everything that exists because of a machine: processes, sockets, folders and whatever else its kind has. */
  remains(): Promise<readonly string[]>
  close(): Promise<void>
}

const never = new AbortController().signal

/** What every driver must do, whatever its machines are. */
export function driverSuite(name: string, openGround: () => Promise<DriverGround>): void {
  const check = (sentence: string, body: (ground: DriverGround, context: TestContext) => Promise<void>) =>
    test(`${name}: ${sentence}`, async (context) => {
      const ground = await openGround()
      context.after(() => ground.close())
      await body(ground, context)
    })

  check('has no problem', async (ground) => {
    const driver = await ground.openDriver()

    const problem = await driver.problem()

    assert.equal(problem, undefined)
    assert.deepEqual(await ground.remains(), [])
  })

  check('starts a machine whose agent answers', async (ground) => {
    const driver = await ground.openDriver()
    const spec = machineSpec()

    const machine = await driver.start(spec, never)

    assert.equal(machine.sessionId, spec.sessionId)
    assert.equal(await answers(machine), true)
    assert.equal(await hasEnded(machine), false)
  })

  check('leaves nothing of a machine that it stops', async (ground) => {
    const driver = await ground.openDriver()
    const machine = await driver.start(machineSpec(), never)
    assert.notDeepEqual(await ground.remains(), [])

    await driver.stop(machine.sessionId)

    await machine.ended
    assert.equal(await answers(machine), false)
    assert.deepEqual(await ground.remains(), [])
    assert.deepEqual(await driver.list(), [])
  })

  check('can be told to stop a machine twice, at once, or one that it never saw', async (ground) => {
    const driver = await ground.openDriver()
    const { sessionId } = await driver.start(machineSpec(), never)

    await Promise.all([driver.stop(sessionId), driver.stop(sessionId)])
    await driver.stop(sessionId)
    await driver.stop(machineSpec().sessionId)

    assert.deepEqual(await ground.remains(), [])
  })

  check('refuses a second machine for a session and leaves the first alone', async (ground) => {
    const driver = await ground.openDriver()
    const spec = machineSpec()
    const machine = await driver.start(spec, never)

    await assert.rejects(driver.start(spec, never))

    assert.equal(await answers(machine), true)
    assert.equal((await driver.list()).length, 1)
  })

  check('stops a machine that is still starting', async (ground) => {
    const driver = await ground.openDriver()
    const spec = machineSpec()
    const rejection = assert.rejects(driver.start(spec, never))

    await driver.stop(spec.sessionId)

    assert.deepEqual(await ground.remains(), [])
    await rejection
  })

  check('leaves nothing of a start that was aborted, at whatever moment', async (ground) => {
    const driver = await ground.openDriver()
    const aborted = new AbortController()
    aborted.abort(new Error('nobody wants it any more'))
    await assert.rejects(driver.start(machineSpec(), aborted.signal), /nobody wants it/)

    for (const milliseconds of [0, 2, 5, 10, 15, 20, 30, 40, 60]) {
      const signal = AbortSignal.timeout(milliseconds)
      const outcome = await driver.start(machineSpec(), signal).catch((error: unknown) => error)
      // A fast driver may have started by then.
      if (outcome === signal.reason) assert.deepEqual(await ground.remains(), [], `after ${milliseconds} ms`)
      else await driver.stop((outcome as Machine).sessionId)
    }

    assert.deepEqual(await ground.remains(), [])
  })

  check('starts many machines at once, each for itself', async (ground) => {
    const driver = await ground.openDriver()

    const machines = await Promise.all(Array.from({ length: 5 }, () => driver.start(machineSpec(), never)))

    assert.deepEqual(await Promise.all(machines.map(answers)), [true, true, true, true, true])
    const listed = (await driver.list()).map((machine) => machine.sessionId)
    assert.deepEqual(listed.toSorted(), machines.map((machine) => machine.sessionId).toSorted())
    await Promise.all(machines.map((machine) => driver.stop(machine.sessionId)))
    assert.deepEqual(await ground.remains(), [])
  })

  check('finds the machines that another driver has started, and can stop them', async (ground) => {
    const [first, second] = [await ground.openDriver(), await ground.openDriver()]
    const machine = await first.start(machineSpec(), never)

    const [found, ...others] = await second.list()

    assert.deepEqual(others, [])
    assert.ok(found)
    assert.equal(found.sessionId, machine.sessionId)
    assert.equal(await answers(found), true)
    assert.equal(await hasEnded(found), false)
    await second.stop(found.sessionId)
    await Promise.all([machine.ended, found.ended])
    assert.deepEqual(await ground.remains(), [])
  })

  check('tells of the end of a machine that is killed, its own or another driver’s', async (ground) => {
    const [first, second] = [await ground.openDriver(), await ground.openDriver()]
    const machine = await first.start(machineSpec(), never)
    const [adopted] = await second.list()

    await ground.killMachine(machine.sessionId)

    await Promise.all([machine.ended, adopted?.ended])
    assert.equal(await answers(machine), false)
  })

  check('lists a machine that has died until it is stopped', async (ground) => {
    const driver = await ground.openDriver()
    const { sessionId } = await driver.start(machineSpec(), never)
    await ground.killMachine(sessionId)

    const [found] = await (await ground.openDriver()).list()

    assert.equal(found?.sessionId, sessionId)
    await found?.ended
    await driver.stop(sessionId)
    assert.deepEqual(await driver.list(), [])
    assert.deepEqual(await ground.remains(), [])
  })

  check('freezes a machine and lets it go on', async (ground, context) => {
    const driver = await ground.openDriver()
    if (!driver.capabilities.canFreeze) return context.skip('this driver cannot freeze')
    const [frozen, other] = [await driver.start(machineSpec(), never), await driver.start(machineSpec(), never)]

    await driver.freeze(frozen.sessionId)
    let hasAnswered = false
    const answer = answers(frozen).finally(() => {
      hasAnswered = true
    })
    for (let round = 0; round < 5; round++) assert.equal(await answers(other), true)
    const hasAnsweredWhileFrozen = hasAnswered
    await driver.thaw(frozen.sessionId)

    assert.equal(await answer, true)
    assert.equal(hasAnsweredWhileFrozen, false)
  })

  check('stops a frozen machine', async (ground, context) => {
    const driver = await ground.openDriver()
    if (!driver.capabilities.canFreeze) return context.skip('this driver cannot freeze')
    const machine = await driver.start(machineSpec(), never)
    await driver.freeze(machine.sessionId)

    await driver.stop(machine.sessionId)

    await machine.ended
    assert.deepEqual(await ground.remains(), [])
  })

  check('knows no last lines of a machine that is not there', async (ground) => {
    const driver = await ground.openDriver()

    const lines = await driver.lastLines(machineSpec().sessionId)

    assert.equal(lines, '')
  })
}

async function answers(machine: Machine): Promise<boolean> {
  return ask(machine, getAgentState.path).then(
    () => true,
    () => false,
  )
}

/** Looks without waiting: an end that is settled wins over a promise that settles in this turn. */
async function hasEnded(machine: Machine): Promise<boolean> {
  return Promise.race([machine.ended.then(() => true), new Promise<false>((resolve) => setImmediate(resolve, false))])
}
