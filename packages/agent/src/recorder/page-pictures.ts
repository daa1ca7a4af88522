import type { Writable } from 'node:stream'
import type { Browser } from '../browser/browser.ts'
import { Screencast } from '../screencast/screencast.ts'

/** A page without changes sends no pictures. The recording repeats its last one, so that its length is right. */
const repeatMilliseconds = 500
const pictureQuality = 90

interface PagePicturesOptions {
  readonly browser: Browser
  readonly framerate: number
  readonly width: number
  readonly height: number
}

/** Passes the pictures of the front page of a headless browser to an encoder, as JPEG, when they are drawn. */
export class PagePictures {
  readonly #input: Writable
  readonly #screencast: Screencast
  readonly #timer: NodeJS.Timeout
  #written: Buffer | undefined
  #writtenAt = 0
  #isOver = false

  constructor(input: Writable, { browser, framerate, width, height }: PagePicturesOptions) {
    this.#input = input
    input.on('error', () => {}) // The encoder has ended, and reports that itself.
    this.#screencast = new Screencast({
      browser,
      framesPerSecond: framerate,
      quality: pictureQuality,
      maxSize: { width, height },
    })
    this.#timer = setInterval(() => this.#write(), 1000 / framerate)
  }

  /** Repeats the last picture until now, and ends the input. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearInterval(this.#timer)
    this.#screencast.stop()
    this.#input.end(this.#screencast.frame?.jpeg)
  }

  #write(): void {
    const newest = this.#screencast.frame?.jpeg
    const now = performance.now()
    const isDue = newest !== this.#written || now - this.#writtenAt >= repeatMilliseconds
    // An encoder that does not keep up gets fewer pictures.
    if (!newest || !isDue || this.#input.writableNeedDrain) return
    this.#written = newest
    this.#writtenAt = now
    this.#input.write(newest)
  }
}
