import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readStream, type StreamPart } from './read-stream.ts'

/** A stream in Chromium that returns as much as requested. */
function streamOf(content: Buffer) {
  let position = 0
  let asked = 0
  let open = 0
  let mostOpen = 0
  return {
    get asked() {
      return asked
    },
    get mostOpen() {
      return mostOpen
    },
    async read(sizeBytes: number): Promise<StreamPart> {
      asked += 1
      open += 1
      mostOpen = Math.max(mostOpen, open)
      await Promise.resolve()
      open -= 1
      const bytes = content.subarray(position, position + sizeBytes)
      position += bytes.length
      return { data: bytes.toString('base64'), base64Encoded: true, eof: bytes.length === 0 }
    },
  }
}

test('returns every byte once and in order', async () => {
  for (const isLive of [false, true]) {
    const content = Buffer.from(Array.from({ length: 200_000 }, (_, index) => index % 251))
    const stream = streamOf(content)
    const chunks = await Array.fromAsync(readStream({ read: (size) => stream.read(size), isLive }))

    assert.ok(Buffer.concat(chunks).equals(content))
  }
})

test('does not read ahead of the reader', async () => {
  const stream = streamOf(Buffer.alloc(10_000_000))
  const chunks = readStream({ read: (size) => stream.read(size), isLive: false })
  await chunks.next()
  const { asked } = stream
  await Promise.resolve()

  assert.equal(asked, 2)
  assert.equal(stream.asked, asked)
  assert.equal(stream.mostOpen, 2)
  await chunks.return(undefined)
})

test('returns text as its bytes', async () => {
  const parts: StreamPart[] = [
    { data: 'grüße ', eof: false },
    { data: '4oKs', base64Encoded: true, eof: false },
    { data: '', eof: true },
  ]
  const read = async (): Promise<StreamPart> => parts.shift() ?? { data: '', eof: true }

  assert.equal(String(Buffer.concat(await Array.fromAsync(readStream({ read, isLive: false })))), 'grüße €')
})

test('returns what arrived before a failure, and then the failure', async () => {
  let reads = 0
  const read = async (): Promise<StreamPart> => {
    if (++reads > 1) throw new Error('the browser has gone')
    return { data: 'x', eof: false }
  }
  const chunks = readStream({ read, isLive: false })

  assert.equal(String((await chunks.next()).value), 'x')
  await assert.rejects(chunks.next(), /the browser has gone/)
})
