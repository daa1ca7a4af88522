import type { Writable } from 'node:stream'
import type { Browser } from '../browser/browser.ts'
import type { CdpEventParams } from '../browser/cdp-types.ts'
import { type ActivePage, ActivePages } from '../computer/page/active-page.ts'

/** How soon another page in front, or a new browser after a crash, is recorded. */
const followIntervalMilliseconds = 500
/** A page that stands still sends no pictures. The recording repeats its last one, so that it ends when it ends. */
const repeatMilliseconds = 500
const answerLimitMilliseconds = 5_000
const pictureQuality = 90

interface PagePicturesOptions {
  readonly browser: Browser
  readonly framerate: number
  readonly width: number
  readonly height: number
}

/** Gives an encoder the pictures of the page in front of a headless browser, as JPEG, when they are drawn. */
export class PagePictures {
  readonly #options: PagePicturesOptions
  readonly #input: Writable
  readonly #timers: readonly NodeJS.Timeout[]
  #pages: ActivePages | undefined
  #stopListening = () => {}
  #shown: ActivePage | undefined
  #newest: Buffer | undefined
  #written: Buffer | undefined
  #writtenAt = 0
  #isFollowing = false
  #isOver = false

  constructor(input: Writable, options: PagePicturesOptions) {
    this.#options = options
    this.#input = input
    input.on('error', () => {}) // The encoder has gone, and says so itself.
    this.#timers = [
      setInterval(() => this.#follow(), followIntervalMilliseconds),
      setInterval(() => this.#write(), 1000 / options.framerate),
    ]
    this.#follow()
  }

  /** Shows the last picture until now, and ends the input. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const timer of this.#timers) clearInterval(timer)
    this.#stopListening()
    this.#hide()
    this.#input.end(this.#newest)
  }

  #follow(): void {
    if (this.#isFollowing) return
    this.#isFollowing = true
    this.#showFront()
      .catch(() => {}) // The page has gone, or hangs: the next look finds another one.
      .finally(() => {
        this.#isFollowing = false
      })
  }

  async #showFront(): Promise<void> {
    const chromium = await this.#options.browser.running()
    if (this.#pages?.chromium !== chromium) {
      this.#stopListening()
      this.#pages = new ActivePages(chromium)
      this.#stopListening = chromium.pipe.on('Page.screencastFrame', (frame, session) => this.#take(frame, session))
      this.#shown = undefined
    }
    const front = await this.#pages.find()
    if (this.#isOver || !front || front.session === this.#shown?.session) return
    this.#hide()
    this.#shown = front
    try {
      const { width, height } = this.#options
      const picture = { format: 'jpeg', quality: pictureQuality, maxWidth: width, maxHeight: height } as const
      await front.send('Page.startScreencast', picture, answerLimitMilliseconds)
    } catch (error) {
      this.#shown = undefined
      throw error
    }
  }

  #hide(): void {
    this.#shown?.send('Page.stopScreencast', undefined, answerLimitMilliseconds).catch(() => {}) // It has gone.
    this.#shown = undefined
  }

  #take({ data, sessionId }: CdpEventParams<'Page.screencastFrame'>, session: string | undefined): void {
    if (session === undefined || session !== this.#shown?.session) return // Of a client's own.
    this.#newest = Buffer.from(data, 'base64')
    const { pipe } = this.#pages?.chromium ?? {}
    setTimeout(() => {
      // Chromium sends the next picture only then.
      pipe?.send('Page.screencastFrameAck', { sessionId }, session).catch(() => {}) // It has gone.
    }, 1000 / this.#options.framerate).unref()
  }

  #write(): void {
    const now = performance.now()
    const isDue = this.#newest !== this.#written || now - this.#writtenAt >= repeatMilliseconds
    // An encoder that does not keep up gets fewer pictures.
    if (!this.#newest || !isDue || this.#input.writableNeedDrain) return
    this.#written = this.#newest
    this.#writtenAt = now
    this.#input.write(this.#newest)
  }
}
