import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { PassThrough } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { bytesOfBody } from './request-body.ts'

const asRequest = (body: PassThrough) => body as unknown as IncomingMessage

test('a body that comes slowly is read to its end', async () => {
  const body = new PassThrough()
  const read = buffer(bytesOfBody(asRequest(body), 1000))

  for (const text of ['a', 'b', 'c']) {
    body.write(text)
    await new Promise((resolve) => setImmediate(resolve))
  }
  body.end()

  assert.equal(String(await read), 'abc')
})

test('one that stops is given up, and what comes after all goes nowhere', async () => {
  const body = new PassThrough()
  body.write('a')

  await assert.rejects(buffer(bytesOfBody(asRequest(body), 10)), { code: 'request_timeout' })

  body.end('late')
  body.resume()
  await new Promise((resolve) => body.once('end', resolve))
})

test('one that breaks off is an error of its sender', async () => {
  const body = new PassThrough()
  body.write('a')
  const read = buffer(bytesOfBody(asRequest(body)))

  body.destroy(new Error('aborted'))

  await assert.rejects(read, { code: 'bad_request' })
})
