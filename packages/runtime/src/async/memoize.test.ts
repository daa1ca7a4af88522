import assert from 'node:assert/strict'
import { test } from 'node:test'
import { memoize } from './memoize.ts'

test('the work is done once for all callers, and again after a failure', async () => {
  let count = 0
  const read = memoize(async () => {
    count += 1
    if (count === 1) throw new Error('not yet')
    return count
  })

  const failed = await Promise.allSettled([read(), read()])

  assert.deepEqual(
    failed.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  assert.deepEqual(await Promise.all([read(), read()]), [2, 2])
  assert.equal(await read(), 2)
})
