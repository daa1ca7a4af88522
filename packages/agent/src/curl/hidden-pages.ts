import { Semaphore } from '@berth/runtime/async/semaphore.ts'
import type { Browser } from '../browser/browser.ts'
import { HiddenPage } from './hidden-page.ts'

/** Each costs the browser about 15 MB. */
const maxPages = 8
const idleMilliseconds = 5_000

/** Hidden pages for concurrent requests; a free page waits a moment for the next request and is then closed. */
export class HiddenPages {
  readonly #browser: Browser
  readonly #idle = new Map<HiddenPage, NodeJS.Timeout>()
  readonly #open = new Semaphore(maxPages)

  constructor(browser: Browser) {
    this.#browser = browser
  }

  /** Rejects if the signal aborts before a page is available. */
  async take(signal: AbortSignal): Promise<HiddenPage> {
    await this.#open.acquire(signal)
    try {
      const { pipe } = await this.#browser.running()
      for (const [page, timer] of this.#idle) {
        this.#idle.delete(page)
        clearTimeout(timer)
        if (page.isOf(pipe)) return page
        await page.close() // It belongs to a browser that has ended.
      }
      return await HiddenPage.open(pipe)
    } catch (error) {
      this.#open.release()
      throw error
    }
  }

  /** A page whose request was completed can take another one. */
  release(page: HiddenPage): void {
    const timer = setTimeout(() => {
      this.#idle.delete(page)
      void page.close()
    }, idleMilliseconds)
    this.#idle.set(page, timer.unref())
    this.#open.release()
  }

  /** Ends the page, whatever it is doing. */
  async discard(page: HiddenPage): Promise<void> {
    await page.close()
    this.#open.release()
  }
}
