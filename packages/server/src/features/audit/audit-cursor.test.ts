import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { AuditQuery } from '@berth/contract/audit/audit-endpoints.ts'
import { newId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import fc from 'fast-check'
import { TestServer } from '../../testing/server-test.ts'
import { readCursor, writeCursor } from './audit-cursor.ts'
import { AuditStore } from './audit-store.ts'

const server = await TestServer.open()
after(() => server.close())

const start = new Date('2026-01-01T00:00:00Z')
const filter: AuditQuery = { start, end: new Date('2026-01-02T00:00:00Z') }

test('a cursor is valid only for its own filter', () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.date({ noInvalidDate: true, min: new Date(0) }),
      fc.string({ maxLength: 60 }),
      (until, time, id) => {
        const cursor = { untilSequence: until, after: { occurredAt: time, eventId: id } }
        const text = writeCursor(cursor, filter)

        assert.deepEqual(readCursor(text, filter, 'cursor'), cursor)
        assert.throws(() => readCursor(text, { ...filter, method: 'POST' }, 'cursor'), BerthError)
      },
    ),
  )
})

test('any text that is not a cursor is rejected by name', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json().map((json) => Buffer.from(json).toString('base64url')),
      ),
      (text) => {
        assert.throws(() => readCursor(text, filter, 'cursor'), { code: 'invalid_input' })
      },
    ),
  )
})

test('pages of any size and order contain the entries of the first request once and in order', async () => {
  const store = new AuditStore(server.database)
  await fc.assert(
    fc.asyncProperty(
      // Seconds after the start. Many entries share a time, and later ones are inserted between earlier ones.
      fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 40 }),
      fc.array(fc.nat({ max: 5 }), { maxLength: 10 }),
      fc.integer({ min: 1, max: 15 }),
      fc.constantFrom('asc' as const, 'desc' as const),
      async (early, late, limit, order) => {
        const { organizationId } = await server.project()
        const entries = (seconds: readonly number[]) =>
          seconds.map((second) => ({
            eventId: newId('audit-entry', server.clock.now()),
            organizationId,
            occurredAt: new Date(start.getTime() + second * 1000),
            ...{ service: 'api', authStrategy: 'api_key', userId: 'k', email: '', status: 200, method: 'POST' },
            ...{ path: '/', route: '/', domain: '', durationMilliseconds: 0, clientIp: '', userAgent: '' },
          }))
        const first = entries(early)
        await store.insert([...first, ...first])
        const untilSequence = await store.lastSequence()
        const waiting = entries(late)

        const read: string[] = []
        for (let position: Parameters<typeof store.list>[2]['after']; ; ) {
          const page = await store.list(organizationId, filter, { untilSequence, order, after: position, limit })
          read.push(...page.map(({ eventId }) => eventId))
          await store.insert(waiting.splice(0, 3))
          const last = page.at(-1)
          if (!last || page.length < limit) break
          position = readCursor(writeCursor({ untilSequence, after: last }, filter), filter, 'cursor').after
        }

        const sorted = first
          .toSorted((a, b) => a.occurredAt.getTime() - b.occurredAt.getTime() || (a.eventId < b.eventId ? -1 : 1))
          .map(({ eventId }) => eventId)
        assert.deepEqual(read, order === 'asc' ? sorted : sorted.toReversed())
      },
    ),
    { numRuns: 40 },
  )
})
