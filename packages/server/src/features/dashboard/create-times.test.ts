import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noTimes, percentileOf, withTime } from './create-times.ts'

test('percentiles are within a quarter of what was measured', () => {
  const measured = Array.from({ length: 200 }, (_, index) => 50 + index * 10)
  const times = measured.reduce(withTime, noTimes)

  for (const share of [0.5, 0.9, 0.99]) {
    const exact = measured[Math.ceil(share * measured.length) - 1] ?? 0
    const estimated = percentileOf(times, share) ?? 0
    assert.ok(Math.abs(estimated - exact) <= exact / 4, `${share}: ${estimated} for ${exact}`)
  }
})

test('percentiles are undefined without creates, and defined for any duration', () => {
  assert.equal(percentileOf(noTimes, 0.5), null)
  for (const milliseconds of [0, 1, 10_000_000]) {
    assert.ok((percentileOf(withTime(noTimes, milliseconds), 0.5) ?? 0) > 0, `${milliseconds}`)
  }
})
