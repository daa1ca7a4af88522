import { promisify } from 'node:util'
import { constants, crc32, deflateSync, deflate as deflateWithCallback } from 'node:zlib'

const deflate = promisify(deflateWithCallback)

const signature = Buffer.from('89504e470d0a1a0a', 'hex')

/** 8 bits for each of red, green and blue. */
const bitDepthAndColor = [8, 2]
/** The only defined methods for compression and filters, and no interlacing. */
const methods = [0, 0, 0]

export interface Picture {
  readonly width: number
  readonly height: number
  /** Four bytes per pixel as X servers return them: blue, green, red and one unused. */
  readonly pixels: Uint8Array
}

/** How many rows are examined to tell the kind of picture. */
const sampledRows = 32
/** Screens of text compress to a sixth, photographs to half. */
const photographRatio = 0.3

/** Encodes as PNG, fast enough for screenshots: with the fastest compression, and off the main thread. */
export async function encodePng(picture: Picture): Promise<Uint8Array> {
  const size = Buffer.alloc(8)
  size.writeUInt32BE(picture.width, 0)
  size.writeUInt32BE(picture.height, 4)
  const data = isPhotograph(picture)
    ? await deflate(rowsOf(picture, { isFiltered: true }), { level: 1, memLevel: 9, strategy: constants.Z_RLE })
    : await deflate(rowsOf(picture, { isFiltered: false }), { level: 1, memLevel: 9 })
  return Buffer.concat([
    signature,
    ...chunk('IHDR', Buffer.concat([size, Buffer.from([...bitDepthAndColor, ...methods])])),
    ...chunk('IDAT', data),
    ...chunk('IEND', Buffer.alloc(0)),
  ])
}

/** Photographs contain few repetitions: searching for them takes three times as long and saves a tenth. */
function isPhotograph(picture: Picture): boolean {
  const sample = rowsOf(picture, { isFiltered: false, every: Math.ceil(picture.height / sampledRows) })
  return deflateSync(sample, { level: 1 }).length > sample.length * photographRatio
}

interface RowOptions {
  /** Stores each colour as its difference from the previous pixel. */
  readonly isFiltered: boolean
  /** Uses only one of this many rows. */
  readonly every?: number
}

/** Rows of three bytes per pixel, each preceded by a byte for its filter: none, or the previous pixel. */
function rowsOf({ width, height, pixels }: Picture, { isFiltered, every = 1 }: RowOptions): Uint8Array {
  const rows = Buffer.allocUnsafe((width * 3 + 1) * Math.ceil(height / every))
  let to = 0
  for (let y = 0; y < height; y += every) {
    rows[to++] = isFiltered ? 1 : 0
    let from = y * width * 4
    for (let x = 0; x < width; x++) {
      const before = isFiltered && x > 0 ? from - 4 : -1
      for (let part = 2; part >= 0; part--) {
        rows[to++] = (pixels[from + part] as number) - (before === -1 ? 0 : (pixels[before + part] as number))
      }
      from += 4
    }
  }
  return rows
}

function chunk(type: string, data: Buffer): readonly Buffer[] {
  const head = Buffer.alloc(8)
  head.writeUInt32BE(data.length, 0)
  head.write(type, 4, 'latin1')
  const sum = Buffer.alloc(4)
  sum.writeUInt32BE(crc32(data, crc32(head.subarray(4))), 0)
  return [head, data, sum]
}
