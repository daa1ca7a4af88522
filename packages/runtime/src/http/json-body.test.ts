import assert from 'node:assert/strict'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import test from 'node:test'
import fc from 'fast-check'
import Fastify from 'fastify'
import { createLogger } from '../process/logger.ts'
import { replyWithErrors } from './error-reply.ts'
import { acceptJsonBodies, parseJson } from './json-body.ts'

const parseText = (text: string) => parseJson(Buffer.from(text))

test('reads every JSON value as JSON.parse does', () => {
  const isStorable = (text: string) => !text.includes('\\u0000') && !text.includes('__proto__') && text.isWellFormed()
  fc.assert(
    fc.property(fc.json({ maxDepth: 5 }).filter(isStorable), (text) => {
      assert.deepEqual(parseText(text), JSON.parse(text))
    }),
  )
})

test('throws only named errors for any bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      try {
        parseJson(bytes)
      } catch (error) {
        assert.equal((error as { code: string }).code, 'bad_request')
      }
    }),
  )
})

for (const [what, text] of [
  ['a body that is cut off', '{"name":"a'],
  ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22])],
  ['a key __proto__', '{"tags":{"__proto__":"x"}}'],
  ['a NUL character', '{"start_url":"a\\u0000b"}'],
  ['a NUL character in a key', '{"a\\u0000b":1}'],
  ['an unpaired surrogate', '{"start_url":"\\ud800"}'],
  ['nesting of 100,000 levels', '['.repeat(100_000) + ']'.repeat(100_000)],
] as const) {
  test(`rejects ${what}`, () => {
    assert.throws(() => parseJson(Buffer.from(text as string)), { code: 'bad_request' })
  })
}

test('keeps a key named constructor like any other', () => {
  assert.deepEqual(parseText('{"constructor":"x"}'), { constructor: 'x' })
})

test('uses the last of two equal keys', () => {
  assert.deepEqual(parseText('{"name":"a","name":"b"}'), { name: 'b' })
})

test('responds to a body that does not arrive in time, and closes its connection', async () => {
  const app = Fastify()
  acceptJsonBodies(app, { deadlineMilliseconds: 20 })
  replyWithErrors(app, createLogger({ name: 'test', level: 'silent', json: true }))
  app.post('/', () => 'read')
  await app.listen({ host: '127.0.0.1', port: 0 })
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"a":')

  const answer = await text(socket)
  await app.close()

  assert.match(answer, /^HTTP\/1\.1 408 /)
  assert.match(answer, /"code":"request_timeout"/)
})

test('a NUL character is only accepted in data', () => {
  const parse = (text: string) => parseJson(Buffer.from(text), ['body', 'input'])

  assert.deepEqual(parse('{"body":"a\\u0000b"}'), { body: 'a\0b' })
  assert.deepEqual(parse('{"input":{"a\\u0000":["\\u0000"]}}'), { input: { 'a\0': ['\0'] } })
  for (const text of ['{"url":"\\u0000"}', '{"a":{"body":"\\u0000"}}', '{"body\\u0000":1}', '["\\u0000"]']) {
    assert.throws(() => parse(text), /NUL/, text)
  }
  assert.throws(() => parse('{"body":"\\ud800"}'), /surrogate/)
})
