import type { CdpEventParams } from '../../browser/cdp-types.ts'
import type { ObservablePage, Observer } from './observer.ts'

const pauseMilliseconds = 2_000
const answerLimitMilliseconds = 5_000
const maxWidth = 1_280
/** Of the picture as base64. */
const maxLength = 400 * 1024
const smallestScale = 0.1

/** Pictures of a page after it has loaded and after visible changes, at most one in 2 s. */
export class ScreenshotObserver implements Observer {
  readonly #target: ObservablePage
  #timer: NodeJS.Timeout | undefined
  #takenAt = Number.NEGATIVE_INFINITY
  #isTaking = false
  /** Scale at which pictures of this page are small enough. */
  #scale = 1

  constructor(target: ObservablePage) {
    this.#target = target
  }

  get isWanted(): boolean {
    return this.#target.type === 'page' && this.#target.collector.captures('screenshot')
  }

  readonly handlers = {
    'Page.loadEventFired': (_params: CdpEventParams<'Page.loadEventFired'>) => this.request(),
  }

  async start(): Promise<void> {}

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  request(): void {
    if (this.#timer) return
    const wait = Math.max(0, this.#takenAt + pauseMilliseconds - performance.now())
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#takenAt = performance.now()
      this.#take().catch(() => {}) // The page has closed or is busy: the next change triggers another picture.
    }, wait)
    this.#timer.unref()
  }

  async #take(): Promise<void> {
    if (this.#isTaking) return
    this.#isTaking = true
    try {
      const png = await this.#picture()
      if (png) this.#target.emit('monitor_screenshot', 'Page.captureScreenshot', { png })
    } finally {
      this.#isTaking = false
    }
  }

  async #picture(): Promise<string | undefined> {
    const limit = answerLimitMilliseconds
    const { cssVisualViewport } = await this.#target.send('Page.getLayoutMetrics', undefined, limit)
    const { pageX: x, pageY: y, clientWidth: width, clientHeight: height } = cssVisualViewport
    if (width === 0 || height === 0) return undefined
    for (this.#scale = Math.min(this.#scale, maxWidth / width); this.#scale >= smallestScale; this.#scale /= 2) {
      const clip = { x, y, width, height, scale: this.#scale }
      const { data } = await this.#target.send('Page.captureScreenshot', { format: 'png', clip }, limit)
      if (data.length <= maxLength) return data
    }
    this.#scale = 1
    return undefined
  }
}
