import { Changes } from '@berth/runtime/async/changes.ts'
import type { Browser } from '../browser/browser.ts'
import type { CdpEventParams } from '../browser/cdp-types.ts'
import type { Chromium } from '../browser/chromium.ts'
import { type ActivePage, ActivePages } from '../computer/page/active-page.ts'
import { jpegSize } from './jpeg-size.ts'

/** How soon a change of the front page, or a new browser after a crash, is shown. */
const followIntervalMilliseconds = 500
const answerLimitMilliseconds = 5_000

export interface Frame {
  readonly jpeg: Buffer
  readonly width: number
  readonly height: number
  /** CSS pixels of the page per pixel of the picture. */
  readonly scale: number
}

interface ScreencastOptions {
  readonly browser: Pick<Browser, 'running'>
  /** Maximum rate. A page without changes sends nothing. */
  readonly framesPerSecond: number
  /** Of the JPEG, from 0 to 100. */
  readonly quality: number
  /** Larger pages are scaled down. */
  readonly maxSize: { readonly width: number; readonly height: number }
  /** Larger pictures are not shown. */
  readonly maxPictureBytes?: number
}

/**
 * Pictures of the front page of a headless browser. It follows changes of the front page, and a new browser after a
 * crash.
 */
export class Screencast {
  /** Notified of every new picture. */
  readonly changes = new Changes()
  readonly #options: ScreencastOptions
  readonly #timer: NodeJS.Timeout
  #pages: ActivePages | undefined
  #stopListening = () => {}
  #frame: Frame | undefined
  #shown: ActivePage | undefined
  #isFollowing = false
  #isStopped = false
  #lastAcknowledgement = 0

  constructor(options: ScreencastOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#follow(), followIntervalMilliseconds).unref()
    this.#follow()
  }

  /** The newest picture; undefined before the first. */
  get frame(): Frame | undefined {
    return this.#frame
  }

  stop(): void {
    this.#isStopped = true
    clearInterval(this.#timer)
    this.#stopListening()
    this.#hide()
  }

  #follow(): void {
    if (this.#isFollowing) return
    this.#isFollowing = true
    this.#showFront()
      .catch(() => {}) // The page has closed or hangs: the next round finds another one.
      .finally(() => {
        this.#isFollowing = false
      })
  }

  async #showFront(): Promise<void> {
    const chromium = await this.#options.browser.running()
    if (this.#isStopped) return
    const pages = this.#pages?.chromium === chromium ? this.#pages : this.#moveTo(chromium)
    const front = await pages.find()
    if (this.#isStopped || !front || front.session === this.#shown?.session) return
    this.#hide()
    this.#shown = front
    try {
      const { quality, maxSize } = this.#options
      const picture = { format: 'jpeg', quality, maxWidth: maxSize.width, maxHeight: maxSize.height } as const
      await front.send('Page.startScreencast', picture, answerLimitMilliseconds)
    } catch (error) {
      this.#shown = undefined
      throw error
    }
  }

  #moveTo(chromium: Chromium): ActivePages {
    this.#stopListening()
    this.#shown = undefined
    const pages = new ActivePages(chromium)
    this.#pages = pages
    this.#stopListening = chromium.pipe.on('Page.screencastFrame', (frame, session) => this.#take(frame, session))
    return pages
  }

  #hide(): void {
    this.#shown?.send('Page.stopScreencast', undefined, answerLimitMilliseconds).catch(() => {}) // It has gone.
    this.#shown = undefined
  }

  #take(event: CdpEventParams<'Page.screencastFrame'>, session: string | undefined): void {
    // The event belongs to a screencast of a client.
    if (session === undefined || session !== this.#shown?.session) return
    this.#acknowledge(event.sessionId, session)
    const jpeg = Buffer.from(event.data, 'base64')
    const size = jpegSize(jpeg)
    const { maxPictureBytes = Number.POSITIVE_INFINITY } = this.#options
    if (!size || jpeg.length > maxPictureBytes) return
    this.#frame = { jpeg, ...size, scale: event.metadata.deviceWidth / size.width }
    this.changes.notify()
  }

  /** Chromium sends the next picture only after this. The first one after a pause is acknowledged immediately. */
  #acknowledge(sessionId: number, session: string): void {
    const now = performance.now()
    const wait = Math.max(0, this.#lastAcknowledgement + 1000 / this.#options.framesPerSecond - now)
    this.#lastAcknowledgement = now + wait
    const { pipe } = this.#pages?.chromium ?? {}
    setTimeout(() => {
      pipe?.send('Page.screencastFrameAck', { sessionId }, session).catch(() => {}) // It has gone.
    }, wait).unref()
  }
}
