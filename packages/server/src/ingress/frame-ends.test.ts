import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FrameEnds } from './frame-ends.ts'

/** A frame in the form that a server sends. */
function frame(size: number): Buffer {
  const payload = Buffer.alloc(size, '\r\n')
  if (size < 126) return Buffer.concat([Buffer.from([0x82, size]), payload])
  if (size < 65_536) return Buffer.concat([Buffer.from([0x82, 126, size >> 8, size & 0xff]), payload])
  const length = Buffer.alloc(8)
  length.writeBigUInt64BE(BigInt(size))
  return Buffer.concat([Buffer.from([0x82, 127]), length, payload])
}

const sizes = [0, 1, 125, 126, 300, 65_535, 65_536, 70_000, 0, 5]
const frames = sizes.map(frame)
const ends = new Set(frames.map((_, index) => Buffer.concat(frames.slice(0, index + 1)).length))

for (const step of [1, 2, 3, 7, 1_000, 65_537, 1e9]) {
  test(`ends of frames are found in chunks of ${step} bytes`, () => {
    const bytes = Buffer.concat(frames)
    const follower = new FrameEnds()
    for (let at = 0; at < bytes.length; at += step) {
      const chunk = bytes.subarray(at, at + step)
      follower.take(chunk)
      assert.equal(follower.isBetween, ends.has(at + chunk.length), `after ${at + chunk.length} bytes`)
    }
  })
}

test('one of several frames is consumed', () => {
  const follower = new FrameEnds()
  const bytes = Buffer.concat([frame(300), frame(5)])
  follower.take(bytes.subarray(0, 100))

  assert.equal(follower.takeOne(bytes.subarray(100)), frame(300).length - 100)
  assert.ok(follower.isBetween)
})

test('frames begin after the response to the handshake', () => {
  const follower = new FrameEnds({ hasHead: true })

  for (const byte of Buffer.from('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r')) {
    follower.take(Buffer.from([byte]))
    assert.ok(!follower.isBetween)
  }
  follower.take(Buffer.from('\n'))
  assert.ok(follower.isBetween)
  follower.take(frame(3).subarray(0, 4))
  assert.ok(!follower.isBetween)
})
