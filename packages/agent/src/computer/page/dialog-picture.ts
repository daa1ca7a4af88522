import type { ScreenshotRegion } from '@berth/contract/agent/operations/computer-operations.ts'
import type { CdpPipe } from '../../browser/cdp-pipe.ts'
import { inHiddenPage } from '../../browser/targets/in-hidden-page.ts'
import type { Size } from '../screen.ts'
import type { Dialog } from './dialog.ts'
import { type Area, boxOf, buttonsOf, fieldOf, messageAreaOf, titleAreaOf } from './dialog-layout.ts'

interface DialogPicture {
  readonly dialog: Dialog
  readonly screen: Size
  /** The last picture of the page: it cannot be drawn while it waits. */
  readonly behind: Uint8Array | undefined
  readonly region: ScreenshotRegion | undefined
}

/** The screen with the dialog on it, as PNG. It is drawn on a canvas because nothing else in a hidden page is drawn. */
export async function dialogPicture(
  pipe: CdpPipe,
  { dialog, screen, behind, region }: DialogPicture,
): Promise<Uint8Array> {
  const background = behind && `data:image/png;base64,${Buffer.from(behind).toString('base64')}`
  const area = region ?? { x: 0, y: 0, ...screen }
  const args = [partsOf(dialog, screen), area, background ?? null].map((arg) => JSON.stringify(arg))
  return inHiddenPage(pipe, async ({ send }) => {
    const expression = `(${draw})(${args.join(', ')})`
    const { result } = await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true })
    const { value } = result
    return Buffer.from(value.slice(value.indexOf(',') + 1), 'base64')
  })
}

interface Part {
  readonly area: Area
  readonly text: string
  readonly font?: string
  readonly fill?: string
  readonly stroke?: string
  readonly color?: string
  readonly radius?: number
  readonly isCentered?: boolean
}

const blue = '#0b57d0'

function partsOf(dialog: Dialog, screen: Size): readonly Part[] {
  return [
    { area: boxOf(screen), text: '', fill: '#fff', stroke: '#777', radius: 8 },
    { area: titleAreaOf(screen), text: titleOf(dialog), font: 'bold 14px sans-serif' },
    { area: messageAreaOf(screen), text: messageOf(dialog) },
    ...(dialog.type === 'prompt' ? [{ area: fieldOf(screen), text: dialog.text, stroke: blue, radius: 4 }] : []),
    ...buttonsOf(dialog.type, screen).map(({ label, area, accepts }) => {
      const colors = accepts ? { fill: blue, color: '#fff' } : { stroke: blue, color: blue }
      return { area, text: label, radius: 18, isCentered: true, ...colors }
    }),
  ]
}

function titleOf({ type, url }: Dialog): string {
  if (type === 'beforeunload') return 'Leave site?'
  const host = URL.canParse(url) ? new URL(url).host : ''
  return host === '' ? 'This page says' : `${host} says`
}

function messageOf({ type, message }: Dialog): string {
  return type === 'beforeunload' ? 'Changes you made may not be saved.' : message
}

const draw = `async (parts, region, background) => {
  const canvas = document.createElement('canvas')
  Object.assign(canvas, { width: region.width, height: region.height })
  const context = canvas.getContext('2d')
  context.translate(-region.x, -region.y)
  context.fillStyle = '#fff'
  context.fillRect(region.x, region.y, region.width, region.height)
  if (background) {
    const image = new Image()
    image.src = background
    await image.decode().then(() => context.drawImage(image, 0, 0), () => {})
  }
  context.fillStyle = '#0004'
  context.fillRect(region.x, region.y, region.width, region.height)
  for (const { area, text, font = '14px sans-serif', fill, stroke, color = '#222', radius = 0, isCentered } of parts) {
    context.save()
    context.beginPath()
    context.roundRect(area.x + 0.5, area.y + 0.5, area.width - 1, area.height - 1, radius)
    if (fill) { context.fillStyle = fill; context.fill() }
    if (stroke) { context.strokeStyle = stroke; context.stroke() }
    context.clip()
    Object.assign(context, { font, fillStyle: color, textBaseline: 'middle', textAlign: isCentered ? 'center' : 'left' })
    const lines = [...text.slice(0, 2000).split('\\n').flatMap((line) => wrap(line, area.width - 12))]
    const left = isCentered ? area.x + area.width / 2 : area.x + 6
    const top = area.y + (area.height < 40 ? area.height / 2 : 12)
    lines.forEach((line, index) => context.fillText(line, left, top + index * 20))
    context.restore()
  }
  return canvas.toDataURL('image/png')

  function wrap(line, width) {
    const lines = ['']
    for (const word of line.split(/(?<= )/)) {
      if (lines.at(-1) && context.measureText(lines.at(-1) + word).width > width) lines.push('')
      lines.push(lines.pop() + word)
    }
    return lines
  }
}`
