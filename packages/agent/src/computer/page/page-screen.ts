import type { MouseButton, ScreenshotRegion } from '@berth/contract/agent/computer-operations.ts'
import type { Chromium } from '../../browser/chromium.ts'
import type { Key } from '../keys.ts'
import type { Point, Screen, Size, WheelDirection } from '../screen.ts'
import { type ActivePage, ActivePages } from './active-page.ts'
import { PageClipboard } from './page-clipboard.ts'
import { PageKeyboard } from './page-keyboard.ts'

const buttonBits: Readonly<Record<MouseButton, number>> = { left: 1, right: 2, middle: 4, back: 8, forward: 16 }

/** What Chromium makes of one tick of a wheel, in CSS pixels. */
const tickPixels = 120

const wheelTicks: Readonly<Record<WheelDirection, { readonly deltaX: number; readonly deltaY: number }>> = {
  up: { deltaX: 0, deltaY: -tickPixels },
  down: { deltaX: 0, deltaY: tickPixels },
  left: { deltaX: -tickPixels, deltaY: 0 },
  right: { deltaX: tickPixels, deltaY: 0 },
}

/** As in common systems: what is slower or further apart are clicks of their own. */
const doubleClick = { milliseconds: 500, pixels: 4 }

/** A page that is busy, or stopped by a dialog, gets its input later: nobody waits for that. */
const inputLimitMilliseconds = 2_000

interface Press extends Point {
  readonly button: MouseButton
  readonly at: number
  readonly count: number
}

/** A headless browser as a screen: the page in front fills it, and CDP brings it the input of mouse and keyboard. */
export class PageScreen implements Screen {
  readonly chromium: Chromium
  readonly #pages: ActivePages
  readonly #keyboard = new PageKeyboard()
  readonly #clipboard: PageClipboard
  readonly #pressed = new Set<MouseButton>()
  #pointer: Point | undefined
  #lastPress: Press | undefined

  constructor(chromium: Chromium) {
    this.chromium = chromium
    this.#pages = new ActivePages(chromium)
    this.#clipboard = new PageClipboard(chromium.pipe)
  }

  async size(): Promise<Size> {
    const page = await this.#page()
    const { cssLayoutViewport } = await page.send('Page.getLayoutMetrics')
    const { clientWidth, clientHeight } = cssLayoutViewport as { clientWidth: number; clientHeight: number }
    return { width: clientWidth, height: clientHeight }
  }

  async picture(region: ScreenshotRegion | undefined): Promise<Uint8Array> {
    const page = await this.#page()
    const clip = region && { ...region, scale: 1 }
    const { data } = await page.send('Page.captureScreenshot', { format: 'png', optimizeForSpeed: true, clip })
    return Buffer.from(data as string, 'base64')
  }

  /** In the middle at first, as on a display. */
  async pointer(): Promise<Point> {
    if (this.#pointer) return this.#pointer
    const { width, height } = await this.size()
    return { x: Math.floor(width / 2), y: Math.floor(height / 2) }
  }

  async moveTo(point: Point): Promise<void> {
    this.#pointer = point
    await this.#dispatchMouse({ type: 'mouseMoved', button: this.#pressed.values().next().value ?? 'none' })
  }

  async press(button: MouseButton): Promise<void> {
    const { x, y } = await this.pointer()
    this.#lastPress = { x, y, button, at: performance.now(), count: this.#clickCount({ x, y }, button) }
    this.#pressed.add(button)
    await this.#dispatchMouse({ type: 'mousePressed', button, clickCount: this.#lastPress.count })
  }

  async release(button: MouseButton): Promise<void> {
    this.#pressed.delete(button)
    await this.#dispatchMouse({ type: 'mouseReleased', button, clickCount: this.#lastPress?.count ?? 1 })
  }

  async turnWheel(direction: WheelDirection): Promise<void> {
    await this.#dispatchMouse({ type: 'mouseWheel', ...wheelTicks[direction] })
  }

  async pressKey(key: Key): Promise<void> {
    for (const event of this.#keyboard.press(key)) await this.#dispatch('Input.dispatchKeyEvent', event)
  }

  async releaseKey(key: Key): Promise<void> {
    for (const event of this.#keyboard.release(key)) await this.#dispatch('Input.dispatchKeyEvent', event)
  }

  async insertText(text: string): Promise<void> {
    await this.#dispatch('Input.insertText', { text })
  }

  /** The same for a browser with a display, whose windows are not all pages: says whether a page has the focus. */
  async insertIntoFocused(text: string): Promise<boolean> {
    const page = await this.#pages.find()
    const { result } = (await page?.send('Runtime.evaluate', { expression: 'document.hasFocus()' })) ?? {}
    if (!page || (result as { value?: unknown } | undefined)?.value !== true) return false
    await page.send('Input.insertText', { text })
    return true
  }

  /** Nobody sees a pointer on a headless screen. */
  async setPointerHidden(): Promise<void> {}

  readClipboard(): Promise<string> {
    return this.#clipboard.read()
  }

  writeClipboard(text: string): Promise<void> {
    return this.#clipboard.write(text)
  }

  #clickCount({ x, y }: Point, button: MouseButton): number {
    const last = this.#lastPress
    if (!last || last.button !== button) return 1
    const isNear = Math.hypot(x - last.x, y - last.y) <= doubleClick.pixels
    return isNear && performance.now() - last.at <= doubleClick.milliseconds ? last.count + 1 : 1
  }

  async #dispatchMouse(event: Readonly<Record<string, unknown>>): Promise<void> {
    const buttons = this.#pressed.values().reduce((bits, button) => bits | buttonBits[button], 0)
    const modifiers = this.#keyboard.modifiers
    await this.#dispatch('Input.dispatchMouseEvent', { ...(await this.pointer()), ...event, buttons, modifiers })
  }

  /** Resolves when the page has taken the event, or takes too long to. */
  async #dispatch(method: string, event: Readonly<Record<string, unknown>>): Promise<void> {
    const page = await this.#page()
    const limit = Promise.withResolvers<void>()
    const timer = setTimeout(limit.resolve, inputLimitMilliseconds)
    await Promise.race([page.send(method, event), limit.promise])
    clearTimeout(timer)
  }

  async #page(): Promise<ActivePage> {
    const page = await this.#pages.find()
    if (!page) throw new Error('there is no page: all are closed')
    return page
  }
}
