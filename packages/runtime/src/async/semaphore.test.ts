import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import { Semaphore } from './semaphore.ts'

test('admits up to the limit, then in the order of arrival', async () => {
  const semaphore = new Semaphore(2)
  const admitted: number[] = []
  for (let number = 0; number < 4; number += 1) void semaphore.acquire().then(() => admitted.push(number))
  await immediate()
  assert.deepEqual([admitted, semaphore.waiting], [[0, 1], 2])

  semaphore.release()
  await immediate()
  assert.deepEqual(admitted, [0, 1, 2])

  for (let count = 0; count < 3; count += 1) semaphore.release()
  await Promise.all([semaphore.acquire(), semaphore.acquire()])
  await immediate()
  assert.deepEqual([admitted, semaphore.waiting], [[0, 1, 2, 3], 0])
})

test('an aborted caller does not take a slot from later ones', async () => {
  const semaphore = new Semaphore(1)
  await semaphore.acquire()
  const leaving = new AbortController()
  const gone = semaphore.acquire(leaving.signal)
  const next = semaphore.acquire()

  leaving.abort(new Error('left'))
  await assert.rejects(gone, /left/)
  semaphore.release()
  await next
  await assert.rejects(semaphore.acquire(leaving.signal), /left/)
})
