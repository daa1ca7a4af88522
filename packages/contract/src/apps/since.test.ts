import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseSince, timeOf } from './since.ts'

const now = new Date('2026-01-31T12:00:00Z')
const times: readonly (readonly [text: string, time: string])[] = [
  ['5m', '2026-01-31T11:55:00.000Z'],
  ['1h30m', '2026-01-31T10:30:00.000Z'],
  ['1.5h', '2026-01-31T10:30:00.000Z'],
  ['500ms', '2026-01-31T11:59:59.500Z'],
  ['999999999h', '1970-01-01T00:00:00.000Z'],
  ['2026-01-30', '2026-01-30T00:00:00.000Z'],
  ['2026-01-30T10:00', '2026-01-30T10:00:00.000Z'],
  ['2026-01-30T10:00:01.250', '2026-01-30T10:00:01.250Z'],
  ['2026-01-30T10:00:00+02:00', '2026-01-30T08:00:00.000Z'],
]
for (const [text, time] of times) {
  test(`reads ${text}`, () => {
    const since = parseSince(text)

    assert.equal(since && timeOf(since, now).toISOString(), time)
  })
}

test('reads nothing else', () => {
  for (const text of ['yesterday', '5', '-5m', '5 m', '2026-13-01', '2026-01-30T25:00', '01/30/2026']) {
    assert.equal(parseSince(text), undefined, text)
  }
})
