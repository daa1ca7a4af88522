import type { Point, Size } from '../screen.ts'
import type { Dialog } from './dialog.ts'

export interface Area extends Point, Size {}

export interface DialogButton {
  readonly label: string
  readonly area: Area
  readonly accepts: boolean
}

const boxSize = { width: 448, height: 240 } as const
const margin = 24
const buttonSize = { width: 84, height: 36 } as const

/** The position of a dialog on a screen of this size: at the top of the page, as in Chromium. */
export function boxOf({ width }: Size): Area {
  const fitting = Math.min(boxSize.width, width)
  return { x: Math.floor((width - fitting) / 2), y: 0, width: fitting, height: boxSize.height }
}

export function buttonsOf(type: Dialog['type'], screen: Size): readonly DialogButton[] {
  const box = boxOf(screen)
  const y = box.y + box.height - margin - buttonSize.height
  const right = box.x + box.width - margin - buttonSize.width
  const accept = {
    label: type === 'beforeunload' ? 'Leave' : 'OK',
    area: { x: right, y, ...buttonSize },
    accepts: true,
  }
  const cancel = { label: 'Cancel', area: { x: right - buttonSize.width - 8, y, ...buttonSize }, accepts: false }
  return type === 'alert' ? [accept] : [cancel, accept]
}

export function titleAreaOf(screen: Size): Area {
  const box = boxOf(screen)
  return { x: box.x + margin - 6, y: box.y + 18, width: box.width - 2 * margin, height: 24 }
}

export function messageAreaOf(screen: Size): Area {
  const box = boxOf(screen)
  return { x: box.x + margin - 6, y: box.y + 48, width: box.width - 2 * margin, height: 72 }
}

/** The position of the text field of a prompt. */
export function fieldOf(screen: Size): Area {
  const box = boxOf(screen)
  return { x: box.x + margin, y: box.y + 124, width: box.width - 2 * margin, height: 32 }
}

export function contains({ x, y, width, height }: Area, point: Point): boolean {
  return point.x >= x && point.x < x + width && point.y >= y && point.y < y + height
}
