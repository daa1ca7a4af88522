import type { MouseButton, ScreenshotRegion } from '@berth/contract/agent/operations/computer-operations.ts'
import type { CdpMethod, CdpParams } from '../../browser/cdp-types.ts'
import type { Chromium } from '../../browser/chromium.ts'
import type { Key } from '../keys.ts'
import type { Point, Screen, Size, WheelDirection } from '../screen.ts'
import { type ActivePage, ActivePages } from './active-page.ts'
import { dialogPicture } from './dialog-picture.ts'
import { Dialogs } from './dialogs.ts'
import { PageClipboard } from './page-clipboard.ts'
import { type KeyEvent, PageKeyboard } from './page-keyboard.ts'
import { PageViews } from './page-views.ts'

const buttonBits: Readonly<Record<MouseButton, number>> = { left: 1, right: 2, middle: 4, back: 8, forward: 16 }

/** CSS pixels that Chromium scrolls for one tick of a wheel. */
const tickPixels = 120

const wheelTicks: Readonly<Record<WheelDirection, { readonly deltaX: number; readonly deltaY: number }>> = {
  up: { deltaX: 0, deltaY: -tickPixels },
  down: { deltaX: 0, deltaY: tickPixels },
  left: { deltaX: -tickPixels, deltaY: 0 },
  right: { deltaX: tickPixels, deltaY: 0 },
}

/** As in common systems: clicks that are slower or further apart are separate. */
const doubleClick = { milliseconds: 500, pixels: 4 }

/** A page that is busy, or stopped by a dialog, receives its input later: callers do not wait for that. */
const inputLimitMilliseconds = 2_000
/** After this time, input that a page has not taken is no longer expected to arrive. */
const busyMilliseconds = 30_000
/** How many inputs may be pending in a busy page. */
const maxInputsBehind = 500

interface Press extends Point {
  readonly button: MouseButton
  readonly at: number
  readonly count: number
}

/** The screen adds the position and the pressed buttons and modifiers. */
type MouseEvent = Omit<CdpParams<'Input.dispatchMouseEvent'>, 'x' | 'y' | 'buttons' | 'modifiers'>

/** A headless browser as a screen: the front page fills it, and CDP delivers mouse and keyboard input. */
export class PageScreen implements Screen {
  readonly chromium: Chromium
  readonly #pages: ActivePages
  readonly #dialogs: Dialogs
  readonly #views: PageViews
  readonly #keyboard = new PageKeyboard()
  readonly #clipboard: PageClipboard
  readonly #pressed = new Set<MouseButton>()
  #pointer: Point | undefined
  #lastPress: Press | undefined
  #pressedIn: ActivePage | undefined
  /**
   * Number of inputs that pages have not taken within the limit, by CDP session: callers do not wait for the next ones.
   */
  readonly #behind = new Map<string, number>()

  /** The size is used until a page has reported its own. */
  constructor(chromium: Chromium, size: Size) {
    this.chromium = chromium
    this.#pages = new ActivePages(chromium)
    this.#dialogs = new Dialogs(chromium)
    this.#views = new PageViews(size)
    this.#clipboard = new PageClipboard(chromium.pipe)
    this.#pages.watch()
  }

  async size(): Promise<Size> {
    const page = await this.#page()
    return this.#views.sizeOf(page, this.#dialogs.of(page.session) !== undefined)
  }

  async picture(region: ScreenshotRegion | undefined): Promise<Uint8Array> {
    const page = await this.#page()
    const dialog = this.#dialogs.of(page.session)
    if (!dialog) return this.#views.picture(page, region)
    const screen = await this.#views.sizeOf(page, true)
    return dialogPicture(this.chromium.pipe, { dialog, screen, behind: this.#views.lastPicture(page), region })
  }

  /** Initially in the middle, as on a display. */
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
    const page = await this.#page()
    if (this.#dialogs.of(page.session)) return
    const { x, y } = await this.pointer()
    this.#lastPress = { x, y, button, at: performance.now(), count: this.#clickCount({ x, y }, button) }
    this.#pressed.add(button)
    this.#pressedIn = page
    await this.#dispatchMouse({ type: 'mousePressed', button, clickCount: this.#lastPress.count })
  }

  async release(button: MouseButton): Promise<void> {
    if (this.#pressed.delete(button)) {
      await this.#dispatchMouse({ type: 'mouseReleased', button, clickCount: this.#lastPress?.count ?? 1 })
      if (this.#pressed.size === 0) this.#pressedIn = undefined
      return
    }
    const page = await this.#page()
    if (button === 'left') await this.#dialogs.takeClick(page.session, await this.pointer(), await this.size())
  }

  async turnWheel(direction: WheelDirection): Promise<void> {
    await this.#dispatchMouse({ type: 'mouseWheel', ...wheelTicks[direction] })
  }

  async pressKey(key: Key): Promise<void> {
    const events = this.#keyboard.press(key)
    if (await this.#dialogs.takeKey((await this.#page()).session, key, this.#keyboard.isCommanding)) return
    for (const event of events) await this.#dispatchKey(event)
  }

  async releaseKey(key: Key): Promise<void> {
    for (const event of this.#keyboard.release(key)) await this.#dispatchKey(event)
  }

  async insertText(text: string): Promise<void> {
    const page = await this.#page()
    if (this.#dialogs.takeText(page.session, text)) return
    await this.#send(page, 'Input.insertText', { text })
  }

  /** A headless screen shows no pointer. */
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

  /** A page in which a button was pressed receives all mouse events until its release, whatever page is in front. */
  async #dispatchMouse(event: MouseEvent): Promise<void> {
    const page = this.#pressedIn ?? (await this.#page())
    if (page !== this.#pressedIn && this.#dialogs.of(page.session)) return
    const buttons = this.#pressed.values().reduce((bits, button) => bits | buttonBits[button], 0)
    const modifiers = this.#keyboard.modifiers
    await this.#send(page, 'Input.dispatchMouseEvent', { ...(await this.pointer()), ...event, buttons, modifiers })
  }

  async #dispatchKey(event: KeyEvent): Promise<void> {
    await this.#send(await this.#page(), 'Input.dispatchKeyEvent', event)
  }

  /** Resolves when the page has taken the input, cannot because of a dialog, or takes too long. */
  async #send<Method extends CdpMethod>(page: ActivePage, method: Method, event: CdpParams<Method>): Promise<void> {
    const behind = this.#behind.get(page.session) ?? 0
    if (behind >= maxInputsBehind) throw new Error('the page in front takes no input')
    const limit = Promise.withResolvers<void>()
    const timer = setTimeout(limit.resolve, behind > 0 ? 0 : inputLimitMilliseconds)
    this.#behind.set(page.session, behind + 1)
    const taken = page
      .send(method, event, busyMilliseconds)
      .catch((error: Error) => {
        // Input may close the page or make it navigate; the rest of a click then has no target.
        if (this.chromium.pipe.isClosed) throw error
      })
      .finally(() => this.#catchUp(page.session))
    taken.catch(() => {}) // Errors after the limit are ignored.
    const unwatch = this.#dialogs.watch(page.session, limit.resolve)
    try {
      await Promise.race([taken, limit.promise])
    } finally {
      unwatch()
      clearTimeout(timer)
    }
  }

  #catchUp(session: string): void {
    const behind = (this.#behind.get(session) ?? 1) - 1
    if (behind > 0) this.#behind.set(session, behind)
    else this.#behind.delete(session)
  }

  async #page(): Promise<ActivePage> {
    const page = await this.#pages.find()
    if (!page) throw new Error('there is no page: all are closed')
    return page
  }
}
