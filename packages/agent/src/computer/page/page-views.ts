import type { ScreenshotRegion } from '@berth/contract/agent/operations/computer-operations.ts'
import type { Size } from '../screen.ts'
import type { ActivePage } from './active-page.ts'

/** A busy page does not report its view; the last known one is used. */
const viewLimitMilliseconds = 1_000
/** Without a GPU a large page takes a moment to draw. */
const pictureLimitMilliseconds = 8_000
/** After this time a busy page is asked again. */
const busyMilliseconds = 10_000
/** A page that has not reported its view will probably not draw itself. */
const silentPictureLimitMilliseconds = 2_000

/** The visible part of a page in CSS pixels, which input events use too. */
interface View extends Size {
  readonly left: number
  readonly top: number
  /** Other than 1 if a client emulates another device. */
  readonly scale: number
}

interface Sight {
  readonly targetId: string
  view: View
  picture?: Uint8Array
}

const lookUp = `({
  width: innerWidth, height: innerHeight,
  left: visualViewport.pageLeft, top: visualViewport.pageTop,
  scale: devicePixelRatio,
})`

/** The current view of pages and their last picture: a page that waits for the answer to a dialog cannot be asked. */
export class PageViews {
  readonly #defaultSize: Size
  #last: Sight | undefined
  /** The CDP sessions of pages that have not answered yet. */
  readonly #silent = new Set<string>()

  constructor(defaultSize: Size) {
    this.#defaultSize = defaultSize
  }

  async sizeOf(page: ActivePage, isWaiting: boolean): Promise<Size> {
    const { width, height } = isWaiting ? this.#lastView(page) : await this.#view(page)
    return { width, height }
  }

  /** As PNG with one pixel per coordinate. */
  async picture(page: ActivePage, region: ScreenshotRegion | undefined): Promise<Uint8Array> {
    const view = await this.#view(page)
    const asked = {
      format: 'png' as const,
      optimizeForSpeed: true,
      ...((region || view.scale !== 1) && { clip: clipOf(view, region) }),
    }
    const limit = this.#silent.has(page.session) ? silentPictureLimitMilliseconds : pictureLimitMilliseconds
    const { data } = await page.send('Page.captureScreenshot', asked, limit).catch((cause: Error) => {
      throw new Error(`the page in front does not draw itself (${cause.message})`, { cause })
    })
    const picture = Buffer.from(data, 'base64')
    if (!region) this.#last = { targetId: page.targetId, view, picture }
    return picture
  }

  /** Absent if no picture of this page has been taken. */
  lastPicture({ targetId }: ActivePage): Uint8Array | undefined {
    return this.#last?.targetId === targetId ? this.#last.picture : undefined
  }

  #lastView({ targetId }: ActivePage): View {
    if (this.#last?.targetId === targetId) return this.#last.view
    return { ...this.#defaultSize, left: 0, top: 0, scale: 1 }
  }

  async #view(page: ActivePage): Promise<View> {
    if (this.#silent.has(page.session)) return this.#lastView(page)
    const late = Promise.withResolvers<View>()
    const timer = setTimeout(() => {
      this.#silent.add(page.session)
      late.resolve(this.#lastView(page))
    }, viewLimitMilliseconds)
    const asked = askView(page).finally(() => {
      clearTimeout(timer)
      this.#silent.delete(page.session)
    })
    const view = await Promise.race([asked, late.promise])
    if (this.#last?.targetId === page.targetId) this.#last.view = view
    else this.#last = { targetId: page.targetId, view }
    return view
  }
}

/** In an isolated world, because a page may have redefined these names. */
async function askView(page: ActivePage): Promise<View> {
  const { executionContextId } = await page.send(
    'Page.createIsolatedWorld',
    { frameId: page.targetId },
    busyMilliseconds,
  )
  const asked = { expression: lookUp, contextId: executionContextId, returnByValue: true }
  const { result } = await page.send('Runtime.evaluate', asked, busyMilliseconds)
  return result.value
}

/** Chromium measures from the corner of the page, not of the window. */
function clipOf(view: View, region: ScreenshotRegion | undefined): ScreenshotRegion & { readonly scale: number } {
  const { x, y, width, height } = region ?? { x: 0, y: 0, ...view }
  return { x: view.left + x, y: view.top + y, width, height, scale: 1 / view.scale }
}
