import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ReadOnlyFilter } from './read-only-filter.ts'

const handshake = Buffer.from('RFB 003.008\n\x01\x01')
const text = (length: number, rest: number) =>
  Buffer.concat([Buffer.from([6, 0, 0, 0]), int32(length), Buffer.alloc(rest, 4)])

const seen: Readonly<Record<string, Buffer>> = {
  setPixelFormat: Buffer.alloc(20),
  setEncodings: Buffer.from([2, 0, 0, 2, 0, 0, 0, 7, 255, 255, 254, 196]),
  updateRequest: Buffer.from([3, 1, 0, 0, 0, 0, 0, 9, 0, 9]),
  continuousUpdates: Buffer.from([150, 1, 0, 0, 0, 0, 0, 9, 0, 9]),
  fence: Buffer.from([248, 0, 0, 0, 0, 0, 0, 1, 3, 4, 4, 4]),
}
const dropped: Readonly<Record<string, Buffer>> = {
  key: Buffer.from([4, 1, 0, 0, 0, 0, 0, 0x61]),
  pointer: Buffer.from([5, 1, 0, 9, 0, 9]),
  // The encodings above include the one that permits a seventh byte.
  extendedPointer: Buffer.from([5, 0x81, 0, 9, 0, 9, 4]),
  cutText: text(5, 5),
  extendedCutText: text(-8, 8),
  xvp: Buffer.from([250, 0, 1, 2]),
  setDesktopSize: Buffer.concat([Buffer.from([251, 0, 2, 0, 2, 0, 2, 0]), Buffer.alloc(32, 4)]),
  qemuKey: Buffer.from([255, 0, 0, 1, 0, 0, 0, 0x61, 0, 0, 0, 30]),
}

test('input messages are dropped completely, in any order and split in any way', () => {
  const message = fc.constantFrom(...Object.values(seen), ...Object.values(dropped))
  fc.assert(
    fc.property(fc.array(message), fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (messages, pieces) => {
      const sent = Buffer.concat([handshake, seen.setEncodings as Buffer, ...messages])
      const expected = messages.filter((each) => Object.values(seen).includes(each))
      const filter = new ReadOnlyFilter()

      const passed: Buffer[] = []
      for (let offset = 0, index = 0; offset < sent.length; index++) {
        const end = offset + (pieces[index % pieces.length] ?? 1)
        passed.push(Buffer.from(filter.pass(sent.subarray(offset, end))))
        offset = end
      }

      assert.deepEqual(Buffer.concat(passed), Buffer.concat([handshake, seen.setEncodings as Buffer, ...expected]))
    }),
  )
})

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}
