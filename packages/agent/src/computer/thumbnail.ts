import type { Browser } from '../browser/browser.ts'
import { ActivePages } from './page/active-page.ts'

const limitMilliseconds = 2_000
const widthPixels = 320
const quality = 60

/** Takes small pictures of the front page, in headful and headless browsers. */
export class Thumbnails {
  readonly #browser: Browser
  #pages: ActivePages | undefined

  constructor(browser: Browser) {
    this.#browser = browser
  }

  /** JPEG in base64. Absent if no page can be captured. */
  async take(): Promise<string | undefined> {
    const chromium = await this.#browser.running()
    if (this.#pages?.chromium !== chromium) this.#pages = new ActivePages(chromium)
    const page = await this.#pages.find()
    if (!page) return undefined
    const { cssVisualViewport } = await page.send('Page.getLayoutMetrics', undefined as never, limitMilliseconds)
    const { pageX: x, pageY: y, clientWidth: width, clientHeight: height } = cssVisualViewport
    if (width === 0 || height === 0) return undefined
    const clip = { x, y, width, height, scale: Math.min(1, widthPixels / width) }
    const { data } = await page.send('Page.captureScreenshot', { format: 'jpeg', quality, clip }, limitMilliseconds)
    return data
  }
}
