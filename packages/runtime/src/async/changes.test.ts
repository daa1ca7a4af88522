import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { Changes } from './changes.ts'

test('a change wakes everyone who waits, once', async () => {
  const changes = new Changes()
  const { signal } = new AbortController()
  const waits = [changes.next(signal), changes.next(signal)]

  changes.notify()

  await Promise.all(waits)
  assert.equal(changes.size, 0)
})

test('an aborted caller stops waiting', async () => {
  const changes = new Changes()
  const leaving = new AbortController()
  const wait = changes.next(leaving.signal)

  leaving.abort()

  await wait
  await changes.next(leaving.signal)
  assert.equal(changes.size, 0)
})

test('many waits leave no listeners', async () => {
  const changes = new Changes()
  const { signal } = new AbortController()

  for (let count = 0; count < 1_000; count++) {
    const wait = changes.next(signal)
    changes.notify()
    await wait
  }

  assert.equal(getEventListeners(signal, 'abort').length, 0)
})
