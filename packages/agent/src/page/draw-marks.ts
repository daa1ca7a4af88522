import type { CdpPipe } from '../browser/cdp-pipe.ts'
import { inHiddenPage } from '../browser/targets/in-hidden-page.ts'

export interface Mark {
  readonly ref: string
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** Draws a box with its reference around each mark, without changing the page itself. */
export function drawMarks(pipe: CdpPipe, png: string, marks: readonly Mark[]): Promise<string> {
  return inHiddenPage(pipe, async ({ send }) => {
    const expression = `(${draw})(${JSON.stringify(png)}, ${JSON.stringify(marks)})`
    const { result } = await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    const url = String(result.value)
    return url.slice(url.indexOf(',') + 1)
  })
}

/** Runs in a page of our own. A picture may have more pixels than the page has CSS pixels. */
const draw = `async (png, marks) => {
  const image = new Image()
  image.src = 'data:image/png;base64,' + png
  await image.decode()
  const canvas = document.createElement('canvas')
  Object.assign(canvas, { width: image.naturalWidth, height: image.naturalHeight })
  const context = canvas.getContext('2d')
  context.drawImage(image, 0, 0)
  context.font = 'bold 11px sans-serif'
  context.textBaseline = 'top'
  for (const [index, { ref, x, y, width, height }] of marks.entries()) {
    const color = 'hsl(' + ((index * 47) % 360) + ' 90% 35%)'
    context.strokeStyle = color
    context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1)
    const label = context.measureText(ref).width + 4
    const top = y >= 13 ? y - 13 : y
    context.fillStyle = color
    context.fillRect(x, top, label, 13)
    context.fillStyle = '#fff'
    context.fillText(ref, x + 2, top + 1)
  }
  return canvas.toDataURL('image/png')
}`
