import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inflateSync } from 'node:zlib'
import { encodePng } from './png.ts'
import { drawPointer } from './pointer-image.ts'

/** Blue, green, red and a byte without meaning for each pixel. */
const pixels = (...colors: readonly (readonly [red: number, green: number, blue: number])[]) =>
  Uint8Array.from(colors.flatMap(([red, green, blue]) => [blue, green, red, 99]))

test('writes a PNG of its pixels', async () => {
  const png = Buffer.from(
    await encodePng({ width: 2, height: 2, pixels: pixels([1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]) }),
  )

  assert.equal(png.subarray(1, 4).toString(), 'PNG')
  assert.equal(png.subarray(12, 16).toString(), 'IHDR')
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20), png[24], png[25]], [2, 2, 8, 2])
  const length = png.readUInt32BE(33)
  assert.equal(png.subarray(37, 41).toString(), 'IDAT')
  assert.deepEqual([...inflateSync(png.subarray(41, 41 + length))], [0, 1, 2, 3, 4, 5, 6, 0, 7, 8, 9, 10, 11, 12])
  // The end of every PNG, with its checksum.
  assert.equal(png.subarray(-12).toString('hex'), '0000000049454e44ae426082')
})

test('draws the pointer where its tip is, and only what is within the picture', () => {
  const picture = { width: 2, height: 1, pixels: pixels([100, 100, 100], [100, 100, 100]) }
  const opaqueRed = [0, 0, 255, 255]
  const halfBlack = [0, 0, 0, 128]
  const pointer = { x: 11, y: 5, width: 2, height: 2, xhot: 1, yhot: 0 }
  const cursorImage = Uint8Array.from([...opaqueRed, ...halfBlack, ...opaqueRed, ...opaqueRed])

  drawPointer(picture, { ...pointer, cursorImage }, { x: 10, y: 5 })

  assert.deepEqual([...picture.pixels], [0, 0, 255, 99, 50, 50, 50, 99])
})
