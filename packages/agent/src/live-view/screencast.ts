import { Changes } from '@berth/runtime/async/changes.ts'
import type { CdpEventParams } from '../browser/cdp-types.ts'
import type { Chromium } from '../browser/chromium.ts'
import { type ActivePage, ActivePages } from '../computer/page/active-page.ts'
import { jpegSize } from './jpeg-size.ts'

/** How soon another page in front is shown. */
const followIntervalMilliseconds = 500
/** More pictures per second cost the session more than they show. */
const frameIntervalMilliseconds = 40
const answerLimitMilliseconds = 5_000
const picture = { format: 'jpeg', quality: 85, maxWidth: 3840, maxHeight: 3840 } as const
/** RFB has three bytes for the length of a picture. */
const maxPictureBytes = 4 * 1024 * 1024 - 1

export interface Frame {
  readonly jpeg: Buffer
  readonly width: number
  readonly height: number
  /** CSS pixels of the page per pixel of the picture. */
  readonly scale: number
}

/** Pictures of the page in front of a headless browser, one for all who watch. */
export class Screencast {
  readonly chromium: Chromium
  readonly changes = new Changes()
  readonly #pages: ActivePages
  readonly #stopListening: () => void
  readonly #timer: NodeJS.Timeout
  #frame: Frame | undefined
  #shown: ActivePage | undefined
  #isFollowing = false
  #isStopped = false
  #lastAcknowledgement = 0

  constructor(chromium: Chromium) {
    this.chromium = chromium
    this.#pages = new ActivePages(chromium)
    this.#stopListening = chromium.pipe.on('Page.screencastFrame', (frame, session) => this.#take(frame, session))
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
    this.changes.notify()
  }

  get isStopped(): boolean {
    return this.#isStopped
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
    const front = await this.#pages.find()
    if (this.#isStopped || !front || front.session === this.#shown?.session) return
    this.#hide()
    this.#shown = front
    try {
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

  #take(event: CdpEventParams<'Page.screencastFrame'>, session: string | undefined): void {
    if (session === undefined || session !== this.#shown?.session) return // Of a client's own.
    this.#acknowledge(event.sessionId, session)
    const jpeg = Buffer.from(event.data, 'base64')
    const size = jpegSize(jpeg)
    if (!size || jpeg.length > maxPictureBytes) return
    this.#frame = { jpeg, ...size, scale: event.metadata.deviceWidth / size.width }
    this.changes.notify()
  }

  /** Chromium sends the next picture only then. */
  #acknowledge(sessionId: number, session: string): void {
    const wait = this.#lastAcknowledgement + frameIntervalMilliseconds - performance.now()
    this.#lastAcknowledgement = performance.now() + Math.max(0, wait)
    setTimeout(() => {
      this.chromium.pipe.send('Page.screencastFrameAck', { sessionId }, session).catch(() => {}) // It has gone.
    }, wait)
  }
}
