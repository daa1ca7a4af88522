import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { MachineId } from '@berth/contract/common/ids.ts'
import { TestServer } from '../../../testing/server-test.ts'

const server = await TestServer.open({ reserve: { app: 1 } })
after(() => server.close())
const { reserve } = server.services

/** The ready machine, as soon as no create has been in progress for a moment. */
async function refilled(): Promise<MachineId> {
  while (reserve.sizes.app === 0) {
    await reserve.refill()
    await delay(10)
  }
  const row = await server.database.selectFrom('reserve_machines').select('machine_id').executeTakeFirstOrThrow()
  return row.machine_id as MachineId
}

test('a machine for apps waits frozen, without a browser, and cannot reach private networks', async () => {
  const id = await refilled()

  const machine = server.host.machines.get(id)
  assert.deepEqual([machine?.spec.isApp, machine?.agent.isFrozen], [true, true])
  assert.deepEqual(server.egress.routes.get(id), { session_id: id, private_hosts: [], routes: [] })
})

test('of two concurrent claims, one gets the machine, and it runs', async () => {
  const id = await refilled()

  const taken = await Promise.all([reserve.take('app'), reserve.take('app')])

  assert.deepEqual(
    taken.flatMap((machine) => (machine ? [machine.id] : [])),
    [id],
  )
  assert.equal(server.host.machines.get(id)?.agent.isFrozen, false)
  assert.deepEqual(await server.database.selectFrom('reserve_machines').selectAll().execute(), [])
})

const defects: Readonly<Record<string, (id: MachineId) => Promise<unknown>>> = {
  'is claimed elsewhere': async (id) =>
    server.database.deleteFrom('reserve_machines').where('machine_id', '=', id).execute(),
  'has ended': async (id) => {
    const machine = server.host.machines.get(id)
    machine?.agent.kill()
    await machine?.ended
  },
  'cannot be thawed': async (id) => {
    const agent = server.host.machines.get(id)?.agent
    if (agent) agent.thaw = () => assert.fail('no thaw')
  },
}
for (const [what, spoil] of Object.entries(defects)) {
  test(`a machine that ${what} is not claimed`, async () => {
    await spoil(await refilled())

    assert.equal(await reserve.take('app'), undefined)
    assert.equal(reserve.sizes.app, 0)
  })
}
