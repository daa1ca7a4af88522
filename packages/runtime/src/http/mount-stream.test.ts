import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, test } from 'node:test'
import { defineEndpoint } from '@berth/contract/endpoint.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { defineStream } from '@berth/contract/stream.ts'
import fastify from 'fastify'
import { z } from 'zod'
import { createLogger } from '../process/logger.ts'
import { replyWithErrors } from './error-reply.ts'
import { mountStream } from './mount.ts'

const followCount = defineEndpoint(
  defineStream({
    operationId: 'followCount',
    path: '/count',
    summary: 'Count',
    tag: 'Test',
    access: 'public',
    query: z.object({ to: z.coerce.number().int(), ending: z.enum(['end', 'break', 'wait']).default('end') }),
    event: z.object({ count: z.int() }),
    errors: ['session_not_found'],
  }),
)

const app = fastify({ forceCloseConnections: true })
replyWithErrors(app, createLogger({ name: 'test', level: 'error', json: true }))
const left = Promise.withResolvers<void>()
mountStream(app, followCount, async ({ query, signal }) => {
  if (query.to === 0) throw new BerthError('session_not_found', { session: 'brw' })
  return count()
  async function* count() {
    for (let number = 1; number <= query.to; number++) yield { count: number }
    if (query.ending === 'break') throw new Error('broken')
    if (query.ending === 'wait') await once(signal, 'abort').then(() => left.resolve())
  }
})
const origin = await app.listen({ port: 0, host: '127.0.0.1' })
after(() => app.close())

test('events are sent with the headers of a stream', async () => {
  const response = await fetch(`${origin}/count?to=2`)

  assert.equal(await response.text(), 'data: {"count":1}\n\ndata: {"count":2}\n\n')
  assert.equal(response.headers.get('content-type'), 'text/event-stream')
  assert.equal(response.headers.get('x-accel-buffering'), 'no')
  assert.equal(response.headers.get('x-sse-content-type'), 'application/json')
})

for (const [query, status] of [
  ['to=0', 404],
  ['to=x', 400],
] as const) {
  test(`an error before the first event is a response with ${status}`, async () => {
    const response = await fetch(`${origin}/count?${query}`)

    assert.equal(response.status, status)
    assert.match(response.headers.get('content-type') ?? '', /^application\/json/)
  })
}

test('the headers are sent before the first event, and the source ends when the reader disconnects', {
  timeout: 20_000,
}, async () => {
  const leaving = new AbortController()
  const response = await fetch(`${origin}/count?to=-1&ending=wait`, { signal: leaving.signal })

  leaving.abort()

  assert.equal(response.status, 200)
  await left.promise
})

test('a source that fails ends only its own stream', async () => {
  const broken = await fetch(`${origin}/count?to=1&ending=break`)

  await assert.rejects(broken.text())

  assert.equal((await fetch(`${origin}/count?to=1`)).status, 200)
})
