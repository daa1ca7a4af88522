import type { MouseButton, ScreenshotRegion } from '@berth/contract/agent/operations/computer-operations.ts'
import type { Key } from './keys.ts'

export interface Point {
  readonly x: number
  readonly y: number
}

export interface Size {
  readonly width: number
  readonly height: number
}

export type WheelDirection = 'up' | 'down' | 'left' | 'right'

/** What a person uses: a screen, a mouse, a keyboard and a clipboard. */
export interface Screen {
  size(): Promise<Size>
  /** The part of the screen, or all of it, as PNG. */
  picture(region: ScreenshotRegion | undefined): Promise<Uint8Array>
  pointer(): Promise<Point>
  moveTo(point: Point): Promise<void>
  press(button: MouseButton): Promise<void>
  release(button: MouseButton): Promise<void>
  /** Turns the wheel by one tick. */
  turnWheel(direction: WheelDirection): Promise<void>
  pressKey(key: Key): Promise<void>
  releaseKey(key: Key): Promise<void>
  /** Enters text that has no key, as an input method does. */
  insertText(text: string): Promise<void>
  setPointerHidden(isHidden: boolean): Promise<void>
  readClipboard(): Promise<string>
  writeClipboard(text: string): Promise<void>
}
