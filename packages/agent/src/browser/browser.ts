import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as immediate } from 'node:timers/promises'
import type { AgentConfig, ServiceName } from '@berth/contract/agent/agent-endpoints.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { AgentEvents } from '../agent-events.ts'
import { Chromium, type DevToolsEndpoint } from './chromium.ts'
import { Display } from './display.ts'

const maxCrashes = 5
const crashWindowMilliseconds = 30_000
const endpointLimitMilliseconds = 15_000
/** Far more than a start takes on a busy host. */
const startLimitMilliseconds = 45_000

interface RunningChromium {
  readonly chromium: Chromium
  /** CDP session of its first page. */
  readonly page: string
}

interface BrowserOptions {
  readonly config: AgentConfig
  readonly proxyPort: number
  readonly events: AgentEvents
  readonly logger: Logger
}

/**
 * The browser of the session, and its display. What crashes is started again, under the same addresses; a browser
 * that does not start, or crashes again and again, is given up.
 */
export class Browser {
  readonly #options: BrowserOptions
  #chromium: Promise<Chromium> | undefined
  #display: Display | undefined
  #crashes: number[] = []
  #isStopping = false
  /** How the display ended that was not replaced yet. */
  #lostDisplay: string | undefined
  /** Made anew with each end of Chromium: until the next one is ready, clients wait here. */
  #endpoint = pendingEndpoint()
  readonly #givenUp = Promise.withResolvers<string>()

  constructor(options: BrowserOptions) {
    this.#options = options
  }

  /** Resolves with the reason when the browser will not come back. */
  get givenUp(): Promise<string> {
    return this.#givenUp.promise
  }

  /** Launches, reports `ready` when the first page has answered, and from then on keeps the browser running. */
  start(): void {
    this.#keepRunning().catch((error: Error) => {
      if (this.#isStopping) return
      this.#endpoint.reject(error)
      this.#givenUp.resolve(error.message)
    })
  }

  /** The DevTools server of the Chromium that runs, or of the next one while there is none. */
  async endpoint(): Promise<DevToolsEndpoint> {
    return Promise.race([this.#endpoint.promise, tooLate(endpointLimitMilliseconds, 'the browser is not ready')])
  }

  /** The Chromium that runs, or the next one while there is none. */
  async running(): Promise<Chromium> {
    const { ended } = await this.endpoint()
    const chromium = await this.#chromium
    // Between the two it may have ended, and the next may have begun.
    return chromium?.ended === ended ? chromium : this.running()
  }

  /** The name of the display that runs, or of the next one; only a headful session has one. */
  async displayName(): Promise<string> {
    const chromium = await this.running()
    if (this.#display) return this.#display.name
    // It has gone, and takes its browser along before both are started again.
    await chromium.ended
    return this.displayName()
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    const chromium = await this.#chromium?.catch(() => undefined)
    await chromium?.close()
    await this.#display?.close()
  }

  async #keepRunning(): Promise<void> {
    const { events, config } = this.#options
    const first = await this.#launch()
    events.becomeReady()
    this.#openStartPage(first, config.start_url)

    for (let current = first; ; ) {
      const how = await current.chromium.ended
      this.#endpoint = pendingEndpoint()
      current.chromium.kill()
      if (this.#isStopping) return
      // A display that dies takes its browser along, and may be seen to be gone only after it.
      await immediate()
      if (this.#lostDisplay === undefined) this.#noteCrash('chromium', how)
      else this.#noteCrash('display', this.#lostDisplay)
      current = await this.#launch()
      this.#openStartPage(current, undefined)
    }
  }

  /** Resolves when the first page has answered; from then on clients are let in. */
  async #launch(): Promise<RunningChromium> {
    this.#chromium = this.#launchWithDisplay()
    const chromium = await this.#chromium
    const failure = failureOf(chromium)
    const page = await Promise.race([
      // When the line breaks, the reason is how Chromium ended.
      chromium.firstPage().catch(() => failure),
      failure,
      tooLate(startLimitMilliseconds, 'Chromium has started, but its first page does not answer'),
    ])
    const endpoint = await Promise.race([chromium.endpoint, failure])
    await this.#prepare(chromium)
    this.#endpoint.resolve(endpoint)
    return { chromium, page }
  }

  async #launchWithDisplay(): Promise<Chromium> {
    const { config, proxyPort } = this.#options
    if (!config.headless && !this.#display) await this.#startDisplay()
    return Chromium.launch({ config, proxyPort, displayName: this.#display?.name })
  }

  async #startDisplay(): Promise<void> {
    const display = await Display.start(this.#options.config)
    this.#display = display
    this.#lostDisplay = undefined
    void display.ended.then(async (how) => {
      this.#display = undefined
      this.#lostDisplay = how
      display.kill()
      // Its windows are gone: a browser without them is of no use to anybody.
      const chromium = await this.#chromium?.catch(() => undefined)
      chromium?.kill()
    })
  }

  async #prepare(chromium: Chromium): Promise<void> {
    const downloadPath = join(this.#options.config.home_folder, 'Downloads')
    await mkdir(downloadPath, { recursive: true })
    await chromium.pipe.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath })
  }

  /** Dispatched and not awaited: whatever comes of it, the session is there (spec §2.1, start_url). */
  #openStartPage({ chromium: { pipe }, page }: RunningChromium, startUrl: string | undefined): void {
    const ignore = () => {}
    // Without it the address bar of an empty page has the focus.
    pipe.send('Page.bringToFront', {}, page).catch(ignore)
    const opened = startUrl ? pipe.send('Page.navigate', { url: startUrl }, page) : Promise.resolve({})
    opened
      .catch(ignore)
      .then(() => pipe.send('Target.detachFromTarget', { sessionId: page }))
      .catch(ignore)
  }

  #noteCrash(service: ServiceName, how: string): void {
    const { events, logger } = this.#options
    logger.warn({ service, how }, 'a program crashed; starting it again')
    events.reportCrash(service, how)
    const now = performance.now()
    this.#crashes = [...this.#crashes.filter((at) => now - at < crashWindowMilliseconds), now]
    if (this.#crashes.length >= maxCrashes) throw new Error(`${service} crashed ${maxCrashes} times: ${how}`)
  }
}

async function failureOf(chromium: Chromium): Promise<never> {
  const how = await chromium.ended
  throw new Error(`Chromium ended before its first page answered (${how})`)
}

function tooLate(limitMilliseconds: number, message: string): Promise<never> {
  return new Promise((_resolve, reject) => {
    setTimeout(() => reject(new Error(message)), limitMilliseconds).unref()
  })
}

function pendingEndpoint(): PromiseWithResolvers<DevToolsEndpoint> {
  const endpoint = Promise.withResolvers<DevToolsEndpoint>()
  endpoint.promise.catch(() => {}) // Whoever waits for it sees the rejection.
  return endpoint
}
