import type { MouseButton, ScreenshotRegion } from '@berth/contract/agent/operations/computer-operations.ts'
import type { Key } from '../keys.ts'
import { keysymOf } from '../keysyms.ts'
import type { Point, Screen, Size, WheelDirection } from '../screen.ts'
import { encodePng, type Picture } from './png.ts'
import { drawPointer, type PointerImage } from './pointer-image.ts'
import { WindowPing } from './window-ping.ts'
import { XClipboard } from './x-clipboard.ts'
import { XConnection } from './x-connection.ts'
import { XKeyboard } from './x-keyboard.ts'

const buttonNumbers: Readonly<Record<MouseButton, number>> = { left: 1, middle: 2, right: 3, back: 8, forward: 9 }
/** Wheels are buttons too: each press is a tick. */
const wheelNumbers: Readonly<Record<WheelDirection, number>> = { up: 4, down: 5, left: 6, right: 7 }

/** The X image format with whole pixels in screen order. */
const zPixmap = 2
const allPlanes = 0xffff_ffff

/** The X display of a headful session, read and controlled as by a person in front of it. */
export class DisplayScreen implements Screen {
  readonly #connection: XConnection
  readonly #keyboard: XKeyboard
  readonly #clipboard: XClipboard
  #isPointerHidden = false

  private constructor(connection: XConnection, displayName: string) {
    this.#connection = connection
    this.#keyboard = new XKeyboard(connection, new WindowPing(connection))
    this.#clipboard = new XClipboard(connection, displayName)
  }

  static async open(displayName: string): Promise<DisplayScreen> {
    return new DisplayScreen(await XConnection.open(displayName), displayName)
  }

  /** Whether the display has ended, so that this object is unusable. */
  get isLost(): boolean {
    return this.#connection.isLost
  }

  /** Queried each time, because a session's viewport can change. */
  async size(): Promise<Size> {
    const { width, height } = await this.#connection.ask<Size>('GetGeometry', this.#connection.root)
    return { width, height }
  }

  async picture(region: ScreenshotRegion | undefined): Promise<Uint8Array> {
    const { x, y, width, height } = region ?? { x: 0, y: 0, ...(await this.size()) }
    const { root, fixes } = this.#connection
    const [{ data: pixels }, pointer] = await Promise.all([
      this.#connection.ask<{ data: Uint8Array }>('GetImage', zPixmap, root, x, y, width, height, allPlanes),
      this.#isPointerHidden ? undefined : this.#connection.askExtension<PointerImage>(fixes, 'GetCursorImage'),
    ])
    const picture: Picture = { width, height, pixels }
    if (pointer) drawPointer(picture, pointer, { x, y })
    return encodePng(picture)
  }

  async pointer(): Promise<Point> {
    const found = await this.#connection.ask<{ rootX: number; rootY: number }>('QueryPointer', this.#connection.root)
    return { x: found.rootX, y: found.rootY }
  }

  async moveTo({ x, y }: Point): Promise<void> {
    const { test, root } = this.#connection
    test.FakeInput?.(test.MotionNotify, 0, 0, root, x, y)
    await this.#connection.sync()
  }

  async press(button: MouseButton): Promise<void> {
    await this.#fakeButton('ButtonPress', buttonNumbers[button])
  }

  async release(button: MouseButton): Promise<void> {
    await this.#fakeButton('ButtonRelease', buttonNumbers[button])
  }

  async turnWheel(direction: WheelDirection): Promise<void> {
    await this.#fakeButton('ButtonPress', wheelNumbers[direction])
    await this.#fakeButton('ButtonRelease', wheelNumbers[direction])
  }

  pressKey(key: Key): Promise<void> {
    return this.#keyboard.press(key)
  }

  releaseKey(key: Key): Promise<void> {
    return this.#keyboard.release(key)
  }

  /** The toolkit's input method makes text of keysyms that Chromium has no key for. */
  async insertText(text: string): Promise<void> {
    for (const character of text) {
      const key = { keysym: keysymOf(character) }
      await this.pressKey(key)
      await this.releaseKey(key)
    }
  }

  /** Hidden as long as this connection lasts. */
  async setPointerHidden(isHidden: boolean): Promise<void> {
    if (isHidden === this.#isPointerHidden) return
    this.#isPointerHidden = isHidden
    const { fixes, root } = this.#connection
    fixes[isHidden ? 'HideCursor' : 'ShowCursor']?.(root)
    await this.#connection.sync()
  }

  readClipboard(): Promise<string> {
    return this.#clipboard.read()
  }

  writeClipboard(text: string): Promise<void> {
    return this.#clipboard.write(text)
  }

  async #fakeButton(kind: 'ButtonPress' | 'ButtonRelease', number: number): Promise<void> {
    const { test } = this.#connection
    test.FakeInput?.(test[kind], number, 0, 0, 0, 0)
    await this.#connection.sync()
  }
}
