import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { bytesOfBody } from './request-body.ts'

const asRequest = (body: PassThrough) => body as unknown as IncomingMessage

test('a slow body is read completely', async () => {
  const body = new PassThrough()
  const read = buffer(bytesOfBody(asRequest(body), 1000))

  for (const text of ['a', 'b', 'c']) {
    body.write(text)
    await new Promise((resolve) => setImmediate(resolve))
  }
  body.end()

  assert.equal(String(await read), 'abc')
})

test('a body that stalls is abandoned, and what arrives later is discarded', async () => {
  const body = new PassThrough()
  body.write('a')

  await assert.rejects(buffer(bytesOfBody(asRequest(body), 10)), { code: 'request_timeout' })

  body.end('late')
  body.resume()
  await new Promise((resolve) => body.once('end', resolve))
})

test('an incomplete body is an error of the sender', async () => {
  const body = new PassThrough()
  body.write('a')
  const read = buffer(bytesOfBody(asRequest(body)))

  body.destroy(new Error('aborted'))

  await assert.rejects(read, { code: 'bad_request' })
})
