import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { type MachineId, newId } from '@berth/contract/common/ids.ts'
import { HostRoom } from './host-room.ts'

const mebibyte = 1024 ** 2
const newSession = () => newId('machine', new Date())

/** A host with this much available memory. `taken` is what its machines use. */
function openRoom(availableMebibytes: () => number, taken = new Map<MachineId, number>()) {
  return new HostRoom({
    dataFolder: tmpdir(),
    reserve: { memoryBytes: 100 * mebibyte, diskBytes: 0 },
    memoryOf: async (machineId) => taken.get(machineId),
    availableMemory: async () => availableMebibytes() * mebibyte,
  })
}

test('of many concurrent starts, only those with room pass', async () => {
  const room = openRoom(() => 1100)

  const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => room.take(newSession())))

  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 3)
})

test('a start counts only until its session uses the memory', async () => {
  const taken = new Map<MachineId, number>()
  let available = 800
  const room = openRoom(() => available, taken)
  const [first, second] = [newSession(), newSession()]
  await room.take(first)
  await room.take(second)
  // Both have started and use less than they will.
  for (const id of [first, second]) taken.set(id, 100 * mebibyte)
  available = 600
  await assert.rejects(room.take(newSession()), { code: 'capacity_exhausted' })

  for (const id of [first, second]) taken.set(id, 350 * mebibyte)
  available = 400

  await room.take(newSession())
})

test('a failed start returns its share', async () => {
  const room = openRoom(() => 450)
  const first = newSession()
  await room.take(first)
  await assert.rejects(room.take(newSession()))

  room.free(first)

  await room.take(newSession())
})
