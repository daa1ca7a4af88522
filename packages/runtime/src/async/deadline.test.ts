import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DeadlineError, within } from './deadline.ts'

const aMinute = 60_000

test('a promise that settles in time keeps its result', async () => {
  assert.equal(await within(aMinute, Promise.resolve(1)), 1)
  await assert.rejects(within(aMinute, Promise.reject(new Error('its own'))), /its own/)
})

test('a late promise is rejected, and its later failure is ignored', async () => {
  const { promise, reject } = Promise.withResolvers<void>()

  await assert.rejects(within(1, promise), DeadlineError)
  await assert.rejects(
    within(1, promise, () => new TypeError('named by the caller')),
    TypeError,
  )

  reject(new Error('too late'))
  await new Promise(setImmediate)
})
