import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inflateSync } from 'node:zlib'
import { encodePng } from './png.ts'
import { drawPointer } from './pointer-image.ts'

/** Blue, green, red and an unused byte for each pixel. */
const pixels = (...colors: readonly (readonly [red: number, green: number, blue: number])[]) =>
  Uint8Array.from(colors.flatMap(([red, green, blue]) => [blue, green, red, 99]))

/** The filter of each row, and red, green and blue of each pixel. */
function read(png: Buffer, width: number): { readonly filters: readonly number[]; readonly colors: readonly number[] } {
  assert.equal(png.subarray(37, 41).toString(), 'IDAT')
  const rows = inflateSync(png.subarray(41, 41 + png.readUInt32BE(33)))
  const filters: number[] = []
  const colors: number[] = []
  for (let start = 0; start < rows.length; start += width * 3 + 1) {
    const filter = rows[start] ?? 0
    filters.push(filter)
    for (let index = 0; index < width * 3; index++) {
      const before = filter === 1 && index >= 3 ? (colors.at(-3) ?? 0) : 0
      colors.push(((rows[start + 1 + index] ?? 0) + before) & 255)
    }
  }
  return { filters, colors }
}

test('writes a PNG of its pixels', async () => {
  const width = 100
  const colors = Array.from({ length: width * 2 }, (_, index) => [index < 50 ? 1 : 200, 2, 3] as const)

  const png = Buffer.from(await encodePng({ width, height: 2, pixels: pixels(...colors) }))

  assert.equal(png.subarray(1, 4).toString(), 'PNG')
  assert.equal(png.subarray(12, 16).toString(), 'IHDR')
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20), png[24], png[25]], [width, 2, 8, 2])
  assert.deepEqual(read(png, width), { filters: [0, 0], colors: colors.flat() })
  // Every PNG ends with this chunk and its checksum.
  assert.equal(png.subarray(-12).toString('hex'), '0000000049454e44ae426082')
})

test('encodes a photograph as the differences between its pixels', async () => {
  const width = 64
  const colors = Array.from({ length: width * 2 }, (_, index) => {
    const [red = 0, green = 0, blue = 0] = [7919, 104_729, 1_299_709].map((prime) => ((index * prime) >> 3) & 255)
    return [red, green, blue] as const
  })

  const png = Buffer.from(await encodePng({ width, height: 2, pixels: pixels(...colors) }))

  assert.deepEqual(read(png, width), { filters: [1, 1], colors: colors.flat() })
})

test('draws the pointer at its tip, clipped to the picture', () => {
  const picture = { width: 2, height: 1, pixels: pixels([100, 100, 100], [100, 100, 100]) }
  const opaqueRed = [0, 0, 255, 255]
  const halfBlack = [0, 0, 0, 128]
  const pointer = { x: 11, y: 5, width: 2, height: 2, xhot: 1, yhot: 0 }
  const cursorImage = Uint8Array.from([...opaqueRed, ...halfBlack, ...opaqueRed, ...opaqueRed])

  drawPointer(picture, { ...pointer, cursorImage }, { x: 10, y: 5 })

  assert.deepEqual([...picture.pixels], [0, 0, 255, 99, 50, 50, 50, 99])
})
