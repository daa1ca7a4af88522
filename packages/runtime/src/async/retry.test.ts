import assert from 'node:assert/strict'
import { test } from 'node:test'
import { retry } from './retry.ts'

const quick = { firstPauseMilliseconds: 1, longestPauseMilliseconds: 2, patienceMilliseconds: 60_000 }

function failing(times: number) {
  let calls = 0
  const work = async () => {
    calls++
    if (calls <= times) throw new Error(`failure ${calls}`)
    return calls
  }
  return { work, calls: () => calls }
}

test('work is repeated until it succeeds', async () => {
  assert.equal(await retry(failing(3).work, quick), 4)
})

test('the last error is thrown after the time limit', async () => {
  const { work, calls } = failing(Number.POSITIVE_INFINITY)

  await assert.rejects(retry(work, { ...quick, patienceMilliseconds: 0 }), /failure 1$/)

  assert.equal(calls(), 1)
})

test('a permanent error is not retried', async () => {
  const { work, calls } = failing(Number.POSITIVE_INFINITY)

  await assert.rejects(retry(work, { ...quick, isTransient: () => calls() < 2 }), /failure 2/)
})

test('an abort ends the pause at once', async () => {
  const stop = new AbortController()
  const { work, calls } = failing(Number.POSITIVE_INFINITY)

  const retrying = retry(work, { ...quick, firstPauseMilliseconds: 60_000, signal: stop.signal })
  await new Promise(setImmediate)
  stop.abort()

  await assert.rejects(retrying, /failure 1/)
  assert.equal(calls(), 1)
})

test('each pause is twice the one before', async () => {
  const begin = performance.now()

  await retry(failing(4).work, { ...quick, firstPauseMilliseconds: 10, longestPauseMilliseconds: 1_000 })

  assert.ok(performance.now() - begin >= 145, '10, 20, 40 and 80 ms, less what timers are early')
})

// Without the maximum pause this would take a day.
test('no pause is longer than the longest', { timeout: 60_000 }, async () => {
  assert.equal(await retry(failing(27).work, quick), 28)
})
