import type { Browser } from '../browser/browser.ts'
import { HiddenPage } from './hidden-page.ts'

/** Each costs the browser some 15 MB. */
const maxPages = 8
const idleMilliseconds = 5_000

/** Hidden pages for requests at the same time; one that is done waits a moment for the next request, and then goes. */
export class HiddenPages {
  readonly #browser: Browser
  readonly #idle = new Map<HiddenPage, NodeJS.Timeout>()
  readonly #waiting: (() => void)[] = []
  #open = 0

  constructor(browser: Browser) {
    this.#browser = browser
  }

  /** Rejects when the signal aborts before there is one. */
  async take(signal: AbortSignal): Promise<HiddenPage> {
    await this.#enter(signal)
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
      this.#leave()
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
    this.#leave()
  }

  /** Ends whatever the page is at. */
  async throwAway(page: HiddenPage): Promise<void> {
    await page.close()
    this.#leave()
  }

  async #enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#open < maxPages) {
      this.#open += 1
      return
    }
    const turn = Promise.withResolvers<void>()
    this.#waiting.push(turn.resolve)
    const giveUp = () => {
      const place = this.#waiting.indexOf(turn.resolve)
      if (place === -1) return // Its turn has come at the same moment.
      this.#waiting.splice(place, 1)
      turn.reject(signal.reason)
    }
    signal.addEventListener('abort', giveUp)
    await turn.promise.finally(() => signal.removeEventListener('abort', giveUp))
  }

  /** Hands the place to whoever waits longest. */
  #leave(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#open -= 1
  }
}
