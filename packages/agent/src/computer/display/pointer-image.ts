import type { Picture } from './png.ts'

/** The pointer's image as the X server returns it: premultiplied, four bytes per pixel with alpha last. */
export interface PointerImage {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
  readonly xhot: number
  readonly yhot: number
  readonly cursorImage: Uint8Array
}

interface Corner {
  readonly x: number
  readonly y: number
}

/** Draws the pointer into a picture whose top left corner is at `origin` on the screen. */
export function drawPointer({ width, height, pixels }: Picture, pointer: PointerImage, origin: Corner): void {
  const left = pointer.x - pointer.xhot - origin.x
  const top = pointer.y - pointer.yhot - origin.y
  for (let row = Math.max(0, -top); row < pointer.height && top + row < height; row++) {
    for (let column = Math.max(0, -left); column < pointer.width && left + column < width; column++) {
      const from = (row * pointer.width + column) * 4
      const to = ((top + row) * width + left + column) * 4
      const behind = 255 - (pointer.cursorImage[from + 3] ?? 0)
      for (let part = 0; part < 3; part++) {
        const mixed = (pointer.cursorImage[from + part] ?? 0) + ((pixels[to + part] ?? 0) * behind) / 255
        pixels[to + part] = Math.min(255, Math.round(mixed))
      }
    }
  }
}
