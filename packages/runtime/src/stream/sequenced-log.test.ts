import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SequencedLog, type SequencedLogLimits, type SequencedRecord } from './sequenced-log.ts'

interface Numbered {
  readonly number: number
  readonly padding: string
}

const roomy: SequencedLogLimits = { maxEvents: 1_000, maxLength: 1_000_000, maxEventLength: 10_000 }
const never = new AbortController().signal

function logOf(count: number, limits: Partial<SequencedLogLimits> = {}): SequencedLog<Numbered> {
  const log = new SequencedLog<Numbered>({ ...roomy, ...limits })
  for (let number = 1; number <= count; number++) log.append({ number, padding: '' })
  return log
}

/** The records that exist at the moment. */
async function recordsOf(log: SequencedLog<Numbered>, after?: number): Promise<readonly SequencedRecord<Numbered>[]> {
  const leaving = new AbortController()
  const records: SequencedRecord<Numbered>[] = []
  setImmediate(() => leaving.abort())
  for await (const record of log.follow(after, leaving.signal)) records.push(record)
  return records
}

const sequencesOf = (records: readonly SequencedRecord<Numbered>[]) => records.map(({ sequence }) => sequence)

test('a returning reader continues after the last acknowledged event', async () => {
  const log = logOf(5)

  log.acknowledge(3)

  assert.deepEqual(sequencesOf(await recordsOf(log)), [4, 5])
  assert.deepEqual(sequencesOf(await recordsOf(log, 4)), [5])
})

test('a later event wakes its reader', async () => {
  const log = logOf(0)
  const next = log.follow(undefined, never).next()

  log.append({ number: 1, padding: '' })

  assert.deepEqual((await next).value, { sequence: 1, event: { number: 1, padding: '' } })
})

for (const [what, limits, lost] of [
  ['too many', { maxEvents: 2 }, 3],
  ['too long together', { maxLength: 60 }, 3],
] as const) {
  test(`of events that are ${what} the oldest are lost, which is reported to the reader`, async () => {
    const records = await recordsOf(logOf(5, limits))

    assert.deepEqual(records[0], { sequence: lost, lost })
    assert.deepEqual(sequencesOf(records.slice(1)), [4, 5])
  })
}

test('available records are returned together, with the same order and losses as single ones', async () => {
  const log = logOf(1, { maxEventLength: 100 })
  const together = log.followTogether(undefined, never, 1)
  const next = async () => ((await together.next()).value as readonly string[]).map((text) => JSON.parse(text))

  assert.deepEqual(await next(), [{ sequence: 1, event: { number: 1, padding: '' } }])
  log.append({ number: 2, padding: 'x'.repeat(100) })
  log.append({ number: 3, padding: '"' })
  log.skip()

  assert.deepEqual(await next(), [
    { sequence: 2, lost: 1 },
    { sequence: 3, event: { number: 3, padding: '"' } },
    { sequence: 4, lost: 1 },
  ])
  const waiting = next()
  log.append({ number: 5, padding: '' })
  assert.deepEqual((await waiting)[0].sequence, 5)
})

test('a flush returns what came during the pause', async () => {
  const log = logOf(1)
  const together = log.followTogether(undefined, never, 2 ** 30)
  await together.next()
  const waiting = together.next()
  log.append({ number: 2, padding: '' })

  log.flush()

  assert.deepEqual(JSON.parse((await waiting).value?.[0] ?? ''), { sequence: 2, event: { number: 2, padding: '' } })
})

test('the size of records that are returned together is limited', async () => {
  const log = logOf(0, { maxLength: 10_000_000, maxEventLength: 200_000 })
  for (let number = 1; number <= 5; number++) log.append({ number, padding: 'x'.repeat(100_000) })
  const counts: number[] = []
  for await (const records of log.followTogether(undefined, never, 1)) if (counts.push(records.length) === 2) break

  assert.deepEqual(counts, [3, 2])
})

test('an event that is too long counts as one lost event', async () => {
  const log = logOf(1, { maxEventLength: 100 })
  log.append({ number: 2, padding: 'x'.repeat(100) })
  log.append({ number: 3, padding: '' })

  const records = await recordsOf(log)

  assert.deepEqual(sequencesOf(records), [1, 2, 3])
  assert.deepEqual(records[1], { sequence: 2, lost: 1 })
})

test('events that another reader has acknowledged are reported as lost', async () => {
  const log = logOf(4)
  log.acknowledge(3)

  const records = await recordsOf(log, 1)

  assert.deepEqual(records[0], { sequence: 3, lost: 2 })
  assert.deepEqual(sequencesOf(records), [3, 4])
})

test('unknown sequence numbers change nothing', async () => {
  const log = logOf(2)

  log.acknowledge(99)
  log.append({ number: 3, padding: '' })

  assert.deepEqual(sequencesOf(await recordsOf(log, 99)), [])
  assert.deepEqual(sequencesOf(await recordsOf(log)), [3])
})

test('each event is read once and in order, or counted as lost, with random operations in between', async () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('append' as const), length: fc.nat(120) }),
    fc.record({ do: fc.constant('read' as const), count: fc.nat(6) }),
    fc.record({ do: fc.constant('reconnect' as const), tells: fc.boolean() }),
    fc.record({ do: fc.constant('acknowledge' as const) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 120 }), async (steps) => {
      const log = new SequencedLog<Numbered>({ maxEvents: 7, maxLength: 600, maxEventLength: 130 })
      let appended = 0
      let taken = 0
      let stream = log.follow(undefined, never)
      for (const action of steps) {
        if (action.do === 'append') log.append({ number: ++appended, padding: 'x'.repeat(action.length) })
        else if (action.do === 'acknowledge') log.acknowledge(taken)
        else if (action.do === 'reconnect') stream = log.follow(action.tells ? taken : undefined, never)
        else {
          for (let count = 0; count < action.count && taken < appended; count++) {
            const { value: record } = await stream.next()
            if (record.sequence <= taken) continue // Not acknowledged before the reader reconnected.
            if ('lost' in record) assert.ok(record.sequence - record.lost <= taken)
            else {
              assert.equal(record.sequence, taken + 1)
              assert.equal(record.event.number, record.sequence)
            }
            taken = record.sequence
          }
        }
      }
      while (taken < appended) {
        const { value: record } = await log.follow(taken, never).next()
        assert.equal(record.sequence, 'lost' in record ? taken + record.lost : taken + 1)
        taken = record.sequence
      }
      assert.equal(taken, appended)
    }),
  )
})
