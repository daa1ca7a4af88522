import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cutAt, encodeFrame, opcodes } from '../testing/frames.ts'
import { FrameBoundaries } from './frame-boundaries.ts'

const frame = fc.record({
  payload: fc.uint8Array({ maxLength: 1000 }),
  lengthBytes: fc.constantFrom(2 as const, 8 as const),
  opcode: fc.constantFrom(opcodes.text, opcodes.binary, opcodes.pong),
})

test('finds the last boundary of each chunk, however frames are split into chunks', () => {
  fc.assert(
    fc.property(
      fc.array(frame, { minLength: 1, maxLength: 6 }),
      fc.array(fc.nat(), { maxLength: 12 }),
      (parts, cuts) => {
        const encoded = parts.map(({ payload, ...rest }) => encodeFrame({ payload: Buffer.from(payload), ...rest }))
        const ends = new Set([0])
        for (const bytes of encoded) ends.add(Math.max(...ends) + bytes.length)
        const boundaries = new FrameBoundaries()
        let position = 0

        for (const chunk of cutAt(Buffer.concat(encoded), cuts)) {
          const found = boundaries.advance(chunk)

          const expected = [...ends].filter((end) => end >= position && end <= position + chunk.length).at(-1)
          assert.equal(found, expected === undefined ? -1 : expected - position)
          position += chunk.length
          assert.equal(boundaries.isAtBoundary, ends.has(position))
        }
      },
    ),
  )
})

test('is at a boundary before the first byte, and after a frame without a payload', () => {
  const boundaries = new FrameBoundaries()

  const atFirst = boundaries.isAtBoundary
  const found = boundaries.advance(encodeFrame({ opcode: opcodes.text, payload: Buffer.alloc(0) }))

  assert.equal(atFirst, true)
  assert.equal(found, 2)
})
