import type { Chromium } from '../../browser/chromium.ts'
import type { CaptchaTasks } from '../captcha-tasks.ts'
import type { TelemetrySink } from '../telemetry-sink.ts'
import { ObservedBrowser } from './observed-browser.ts'

/** The observation of pages across runs of Chromium. */
export class Observation {
  readonly #collector: TelemetrySink
  readonly #captchaTasks: CaptchaTasks | undefined
  #browser: ObservedBrowser | undefined
  #endedAt: number | undefined

  constructor(collector: TelemetrySink, captchaTasks: CaptchaTasks | undefined) {
    this.#collector = collector
    this.#captchaTasks = captchaTasks
  }

  /** Observes this Chromium with the current configuration. */
  async apply(chromium: Chromium): Promise<void> {
    if (this.#browser?.chromium !== chromium) this.#follow(chromium)
    await this.#browser?.update()
    if (this.#endedAt === undefined) return
    const reconnect_duration_ms = Math.round(performance.now() - this.#endedAt)
    this.#endedAt = undefined
    this.#collector.emit({
      type: 'monitor_reconnected',
      source: { kind: 'local_process' },
      data: { reconnect_duration_ms },
    })
  }

  noteLookup(name: string): void {
    this.#browser?.noteLookup(name)
  }

  #follow(chromium: Chromium): void {
    const browser = new ObservedBrowser(chromium, this.#collector, this.#captchaTasks)
    this.#browser = browser
    void chromium.ended.then(() => {
      browser.close()
      if (this.#browser !== browser) return
      this.#endedAt = performance.now()
      this.#collector.emit({
        type: 'monitor_disconnected',
        source: { kind: 'local_process' },
        data: { reason: 'chrome_restarted' },
      })
    })
  }
}
