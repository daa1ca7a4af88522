import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type EgressProcess, startEgressProcess } from '../testing/egress-process.ts'
import { startTcpServer } from '../testing/loopback-server.ts'
import { closeOf, type TestConnection, TestMachine } from '../testing/test-machine.ts'

const backLimitMilliseconds = 300
/** A single measurement says little on a busy computer. */
const attempts = 12

/** Resolves when a spare that replaces a worker is running. */
async function untilSpare(egress: EgressProcess, count: number): Promise<void> {
  while ((await egress.workers()).length < count) await delay(20)
  // Allows it to open its message channel.
  await delay(500)
}

async function isOpen({ socket }: TestConnection): Promise<boolean> {
  if (socket.destroyed || socket.readableEnded) return false
  socket.write('still here')
  const [answer] = await Promise.race(['data', 'end'].map((event) => once(socket, event)))
  return answer !== undefined
}

test('a killed worker closes the connections of its machines, and is replaced at once', async (context) => {
  await using server = await startTcpServer((socket) => void socket.pipe(socket))
  await using egress = await startEgressProcess({ workers: 2 })
  await egress.setPolicy({ allow: [server.authority], own_addresses: [] })
  const machines = [await egress.serve('brw_a'), await egress.serve('brw_b'), await egress.serve('brw_c')]
  const times: number[] = []
  let [worker = 0] = await egress.workers()
  for (
    let attempt = 0;
    attempt < attempts && Math.min(...times, Number.POSITIVE_INFINITY) > backLimitMilliseconds;
    attempt += 1
  ) {
    await untilSpare(egress, 3)
    const before = await Promise.all(machines.map(({ socketPath }) => reopen(socketPath)))
    const connections = await Promise.all(before.map((machine) => machine.connect(server.authority)))
    const [first, second, third] = connections.map(({ socket }) => socket)

    const spare = (await egress.workers()).at(-1) ?? 0

    const killedAt = performance.now()
    process.kill(worker, 'SIGKILL')
    // The first worker serves the first and the third machine.
    await Promise.all([first, third].map((socket) => socket && closeOf(socket)))
    const after = await reopen((before[0] as TestMachine).socketPath)
    const again = await after.connect(server.authority)
    times.push(performance.now() - killedAt)
    worker = spare

    assert.equal(await isOpen(again), true)
    assert.equal(second?.destroyed, false)
    assert.equal(await isOpen(connections[1] as TestConnection), true)
  }

  context.diagnostic(`served again after ${times.map(Math.round).join(', ')} ms`)
  assert.ok(Math.min(...times) < backLimitMilliseconds, `back after ${times} ms`)
})

/** Retries until the socket is served, as an agent does. */
async function reopen(socketPath: string): Promise<TestMachine> {
  for (;;) {
    try {
      return await TestMachine.open(socketPath)
    } catch {
      await delay(5)
    }
  }
}

test('changes during the replacement of a worker apply to its successor', async () => {
  await using server = await startTcpServer((socket) => void socket.pipe(socket))
  await using egress = await startEgressProcess({ workers: 1 })
  await egress.serve('brw_a')
  await egress.serve('brw_b')
  const [worker = 0] = await egress.workers()

  process.kill(worker, 'SIGKILL')
  await Promise.all([
    egress.setPolicy({ allow: [server.authority], own_addresses: [] }),
    egress.control('DELETE', '/machines/brw_b'),
    egress.serve('brw_c'),
  ])

  const machine = await reopen(`${egress.folder}/brw_a.sock`)
  assert.equal(await isOpen(await machine.connect(server.authority)), true)
  assert.deepEqual(JSON.parse(await egress.control('GET', '/state')).machines.toSorted(), ['brw_a', 'brw_c'])
  await assert.rejects(once(connect(`${egress.folder}/brw_b.sock`), 'connect'))
})

test('recovers from a worker that is killed repeatedly', async () => {
  await using egress = await startEgressProcess({ workers: 1 })
  await egress.serve('brw_a')

  for (let round = 0; round < 4; round += 1) {
    const [worker = 0] = await egress.workers()
    process.kill(worker, 'SIGKILL')
    await reopen(`${egress.folder}/brw_a.sock`)
  }

  assert.match(egress.log(), /a worker has ended; replacing it/)
})
