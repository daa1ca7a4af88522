import { Semaphore } from '@berth/runtime/async/semaphore.ts'
import type { Browser } from '../browser/browser.ts'
import { HiddenPage } from './hidden-page.ts'

/** Each costs the browser some 15 MB. */
const maxPages = 8
const idleMilliseconds = 5_000

/** Hidden pages for requests at the same time; one that is done waits a moment for the next request, and then goes. */
export class HiddenPages {
  readonly #browser: Browser
  readonly #idle = new Map<HiddenPage, NodeJS.Timeout>()
  readonly #open = new Semaphore(maxPages)

  constructor(browser: Browser) {
    this.#browser = browser
  }

  /** Rejects when the signal aborts before there is one. */
  async take(signal: AbortSignal): Promise<HiddenPage> {
    await this.#open.acquire(signal)
    try {
      const { pipe } = await this.#browser.running()
      for (const [page, timer] of this.#idle) {
        this.#idle.delete(page)
        clearTimeout(timer)
        if (page.isOf(pipe)) return page
        await page.close() // Of a browser that has gone.
      }
      return await HiddenPage.open(pipe)
    } catch (error) {
      this.#open.release()
      throw error
    }
  }

  /** A page whose request came to its end can take another one. */
  giveBack(page: HiddenPage): void {
    const timer = setTimeout(() => {
      this.#idle.delete(page)
      void page.close()
    }, idleMilliseconds)
    this.#idle.set(page, timer.unref())
    this.#open.release()
  }

  /** Ends whatever the page is at. */
  async throwAway(page: HiddenPage): Promise<void> {
    await page.close()
    this.#open.release()
  }
}
