import { promisify } from 'node:util'
import { crc32, deflate as deflateWithCallback } from 'node:zlib'

const deflate = promisify(deflateWithCallback)

const signature = Buffer.from('89504e470d0a1a0a', 'hex')

/** 8 bits for each of red, green and blue. */
const bitDepthAndColor = [8, 2]
/** The only methods that there are, and no interlacing. */
const methods = [0, 0, 0]

export interface Picture {
  readonly width: number
  readonly height: number
  /** Four bytes a pixel, as X servers give them: blue, green, red and one without meaning. */
  readonly pixels: Uint8Array
}

/** As PNG, at the speed of a screenshot: the fastest compression, and off the main thread. */
export async function encodePng({ width, height, pixels }: Picture): Promise<Uint8Array> {
  const size = Buffer.alloc(8)
  size.writeUInt32BE(width, 0)
  size.writeUInt32BE(height, 4)
  const data = await deflate(toRows(width, height, pixels), { level: 1, memLevel: 9 })
  return Buffer.concat([
    signature,
    ...chunk('IHDR', Buffer.concat([size, Buffer.from([...bitDepthAndColor, ...methods])])),
    ...chunk('IDAT', data),
    ...chunk('IEND', Buffer.alloc(0)),
  ])
}

/** Rows of three bytes a pixel, each behind a byte that says that it is not filtered. */
function toRows(width: number, height: number, pixels: Uint8Array): Uint8Array {
  const rows = Buffer.allocUnsafe((width * 3 + 1) * height)
  let to = 0
  let from = 0
  for (let y = 0; y < height; y++) {
    rows[to++] = 0
    for (let x = 0; x < width; x++) {
      rows[to] = pixels[from + 2] as number
      rows[to + 1] = pixels[from + 1] as number
      rows[to + 2] = pixels[from] as number
      to += 3
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
