import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { eventDataOf, sendEvents } from './event-stream.ts'

/** Requests from a server that responds as the test defines. */
async function request(
  context: TestContext,
  answer: (response: ServerResponse, signal: AbortSignal) => Promise<unknown>,
): Promise<{ readonly response: IncomingMessage; readonly answered: Promise<unknown> }> {
  const answered = Promise.withResolvers<unknown>()
  const server = createServer((_request, response) => {
    const leaving = new AbortController()
    response.once('close', () => leaving.abort())
    answered.resolve(answer(response, leaving.signal))
  }).listen(0, '127.0.0.1')
  context.after(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const [response] = await once(get({ host: '127.0.0.1', port, agent: false }), 'response')
  return { response, answered: answered.promise }
}

test('events are sent immediately, with headers that prevent proxies from buffering', async (context) => {
  const { response } = await request(context, (answer) => sendEvents(answer, toAsync([{ a: 1 }, { b: 'two\nlines' }])))

  assert.equal(await text(response), 'data: {"a":1}\n\ndata: {"b":"two\\nlines"}\n\n')
  assert.equal(response.headers['content-type'], 'text/event-stream')
  assert.equal(response.headers['cache-control'], 'no-cache, no-transform')
  assert.equal(response.headers['x-accel-buffering'], 'no')
  assert.equal(response.headers['x-sse-content-type'], 'application/json')
})

test('the headers are sent before the first event, and comments keep the connection alive', async (context) => {
  const { response } = await request(context, (answer, signal) =>
    sendEvents(answer, silentUntil(signal), { keepAliveMilliseconds: 20 }),
  )

  let seen = ''
  for await (const chunk of response.setEncoding('utf8')) {
    seen += chunk
    if (seen.length >= 3 * ': keepalive\n'.length) break
  }

  assert.match(seen, /^(: keepalive\n){3,}$/)
})

test('a reader that does not read blocks its source, and no keep-alives are queued', async (context) => {
  const padding = 'x'.repeat(10_000)
  let made = 0
  let socket: Socket | undefined
  const { response } = await request(context, (answer, signal) => {
    socket = answer.socket as Socket
    return sendEvents(answer, flood(), { keepAliveMilliseconds: 5 })
    async function* flood() {
      while (!signal.aborted && made < 5_000) {
        // Like a source that waits for its events. Without it nothing else would run in between.
        await turn()
        yield { number: ++made, padding }
      }
    }
  })

  for (let before = -1; before !== made; await quiet()) before = made
  const stoodAt = made

  assert.ok(stoodAt < 2_000, `${stoodAt} events made for a reader that takes none`)
  assert.ok((socket?.writableLength ?? 0) < 100_000, `${socket?.writableLength} bytes wait`)
  const lines = (await text(response)).split('\n').filter((line) => line !== '' && !line.startsWith(':'))
  assert.deepEqual(
    lines.map((line) => JSON.parse(eventDataOf(line) ?? '').number),
    Array.from({ length: 5_000 }, (_, index) => index + 1),
  )
})

for (const [what, source, reason] of [
  ['a source that fails', failing, /the source broke/],
  ['an event that cannot be written', () => toAsync([{ big: 1n }]), /BigInt/],
] as const) {
  test(`${what} cuts off its own response, and is reported`, async (context) => {
    const { response, answered } = await request(context, (answer) =>
      sendEvents(answer, source()).then(
        () => 'ended',
        (error: Error) => error.message,
      ),
    )

    await assert.rejects(text(response))
    assert.match(String(await answered), reason)
  })
}

test('a reader that disconnects ends its source, without a failure', async (context) => {
  const ended = Promise.withResolvers<void>()
  const { response, answered } = await request(context, (answer, signal) => sendEvents(answer, source(signal)))
  async function* source(signal: AbortSignal) {
    try {
      yield { first: true }
      await silentUntil(signal).next()
    } finally {
      ended.resolve()
    }
  }
  await once(response, 'data')

  response.destroy()

  await ended.promise
  await answered
})

async function* toAsync(events: readonly object[]): AsyncGenerator<object> {
  yield* events
}

async function* silentUntil(signal: AbortSignal): AsyncGenerator<object> {
  if (!signal.aborted) await once(signal, 'abort')
  yield* []
}

async function* failing(): AsyncGenerator<object> {
  yield { first: true }
  throw new Error('the source broke')
}

/** Long enough for pending work to continue. */
async function quiet(): Promise<void> {
  for (let count = 0; count < 200; count++) await turn()
}
