/** The size in the frame header of a JPEG (ITU T.81 B.2.2); undefined if there is none. */
export function jpegSize(jpeg: Buffer): { readonly width: number; readonly height: number } | undefined {
  for (let offset = 2; offset + 9 <= jpeg.length && jpeg[offset] === 0xff; ) {
    const marker = jpeg[offset + 1] ?? 0
    if (marker >= 0xc0 && marker <= 0xc2) {
      return { height: jpeg.readUInt16BE(offset + 5), width: jpeg.readUInt16BE(offset + 7) }
    }
    offset += 2 + jpeg.readUInt16BE(offset + 2)
  }
  return undefined
}
