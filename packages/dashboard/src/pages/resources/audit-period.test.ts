import assert from 'node:assert/strict'
import { test } from 'node:test'
import { auditPeriod } from './audit-period.ts'

test('the period of the audit log is never longer than the server permits, even while the clock advances', () => {
  let time = Date.parse('2026-01-31T12:00:00Z')

  const { start, end } = auditPeriod(() => {
    time += 1
    return time
  })

  assert.equal(Date.parse(end) - Date.parse(start), 30 * 24 * 60 * 60 * 1000)
  assert.ok(Date.parse(end) > time)
})
