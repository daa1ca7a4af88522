import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { AgentEvents } from '../agent-events.ts'
import { Chromium, type DevToolsEndpoint } from './chromium.ts'
import { Display } from './display.ts'
import { readUserAgent } from './user-agent.ts'

const maxCrashes = 5
const crashWindowMilliseconds = 30_000
const endpointLimitMilliseconds = 15_000

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
  /** Made anew with each end of Chromium: until the next one listens, clients wait here. */
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
      this.#endpoint.reject(error)
      this.#givenUp.resolve(error.message)
    })
  }

  /** The DevTools server of the Chromium that runs, or of the next one while there is none. */
  async endpoint(): Promise<DevToolsEndpoint> {
    const late = new Promise<never>((_resolve, reject) => {
      setTimeout(() => reject(new Error('the browser is not ready')), endpointLimitMilliseconds).unref()
    })
    return Promise.race([this.#endpoint.promise, late])
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    const chromium = await this.#chromium?.catch(() => undefined)
    await chromium?.close()
    this.#display?.kill()
  }

  async #keepRunning(): Promise<void> {
    const { events, config } = this.#options
    const first = await this.#launch()
    const page = await Promise.race([first.firstPage(), failureOf(first)])
    await this.#endpoint.promise
    await this.#prepare(first)
    events.becomeReady()
    this.#openStartPage(first, page, config.start_url)

    for (let current = first; ; ) {
      const how = await current.ended
      this.#endpoint = pendingEndpoint()
      current.kill()
      if (this.#isStopping) return
      this.#noteCrash(how)
      current = await this.#launch()
      await Promise.race([current.firstPage(), failureOf(current)])
      await this.#prepare(current)
    }
  }

  async #launch(): Promise<Chromium> {
    this.#chromium = this.#launchWithDisplay()
    const chromium = await this.#chromium
    chromium.endpoint.then((endpoint) => this.#endpoint.resolve(endpoint)).catch(() => {}) // Its end is handled where it is awaited.
    return chromium
  }

  async #launchWithDisplay(): Promise<Chromium> {
    const { config, proxyPort } = this.#options
    if (!config.headless && !this.#display) await this.#startDisplay()
    const userAgent = config.stealth && config.headless ? await readUserAgent(config.chromium_path) : undefined
    return Chromium.launch({ config, proxyPort, displayName: this.#display?.name, userAgent })
  }

  async #startDisplay(): Promise<void> {
    const display = await Display.start(this.#options.config)
    this.#display = display
    void display.ended.then(async (how) => {
      this.#display = undefined
      display.kill()
      if (this.#isStopping) return
      this.#options.events.reportCrash('display', how)
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
  #openStartPage({ pipe }: Chromium, page: string, startUrl: string | undefined): void {
    const ignore = () => {}
    pipe.send('Page.bringToFront', {}, page).catch(ignore)
    const opened = startUrl ? pipe.send('Page.navigate', { url: startUrl }, page) : Promise.resolve({})
    opened
      .catch(ignore)
      .then(() => pipe.send('Target.detachFromTarget', { sessionId: page }))
      .catch(ignore)
  }

  #noteCrash(how: string): void {
    const { events, logger } = this.#options
    logger.warn({ how }, 'Chromium crashed; starting it again')
    events.reportCrash('chromium', how)
    const now = performance.now()
    this.#crashes = [...this.#crashes.filter((at) => now - at < crashWindowMilliseconds), now]
    if (this.#crashes.length >= maxCrashes) throw new Error(`Chromium crashed ${maxCrashes} times: ${how}`)
  }
}

function pendingEndpoint(): PromiseWithResolvers<DevToolsEndpoint> {
  const endpoint = Promise.withResolvers<DevToolsEndpoint>()
  endpoint.promise.catch(() => {}) // Whoever waits for it sees the rejection; nobody has to wait.
  return endpoint
}

async function failureOf(chromium: Chromium): Promise<never> {
  const how = await chromium.ended
  throw new Error(`Chromium ended before its first page answered: ${how}`)
}
