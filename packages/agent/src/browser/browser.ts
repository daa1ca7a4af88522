import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { setImmediate as immediate } from 'node:timers/promises'
import type { AgentConfig, ServiceName } from '@berth/contract/agent/agent-endpoints.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { AgentEvents } from '../agent-events.ts'
import { Chromium, type DevToolsEndpoint, type FirstPage } from './chromium.ts'
import { Display } from './display.ts'
import { type Tabs, UserData } from './user-data.ts'

const maxCrashes = 5
const crashWindowMilliseconds = 30_000
const endpointLimitMilliseconds = 15_000
/** Far more than a start takes on a busy host. */
const startLimitMilliseconds = 45_000

interface RunningChromium {
  readonly chromium: Chromium
  readonly page: FirstPage
}

/** A profile that waits for Chromium to end. */
interface ProfileChange {
  readonly tabs: Tabs
  readonly done: PromiseWithResolvers<void>
}

/** Where Chromium has found none of the tabs that it was to restore. It would load from far away. */
const newTabPage = 'chrome://new-tab-page'

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
  #startingDisplay: Promise<void> | undefined
  #crashes: number[] = []
  #isStopping = false
  /** How the display ended that was not replaced yet. */
  #lostDisplay: string | undefined
  /** Made anew with each end of Chromium: until the next one is ready, clients wait here. */
  #endpoint = pendingEndpoint()
  readonly #userData: UserData
  /** Settled when the first start may go ahead: with the tabs of the profile that it has waited for, or an empty page. */
  readonly #firstTabs = Promise.withResolvers<Tabs>()
  #hasBegun = false
  #profileChange: ProfileChange | undefined
  readonly #givenUp = Promise.withResolvers<string>()

  constructor(options: BrowserOptions) {
    this.#options = options
    this.#userData = new UserData(options.config)
    if (!options.config.awaits_profile) this.#firstTabs.resolve('blank')
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

  /**
   * Replaces the state of the browser by that of a profile; before the first launch, lets that go ahead. A running
   * Chromium is started anew, under the same addresses. Rejects when the profile cannot be used: the old state is back.
   */
  async loadProfile(archive: Readable, tabs: Tabs): Promise<void> {
    await this.#userData.takeIn(archive)
    if (!this.#hasBegun) {
      await this.#userData.replace()
      return this.#firstTabs.resolve(tabs)
    }
    await this.endpoint() // One that is just being launched must not be taken for one that fails.
    const chromium = await this.#chromium
    const done = Promise.withResolvers<void>()
    this.#profileChange = { tabs, done }
    await chromium?.close()
    await done.promise
  }

  /** Ends the browser for good and gives out its state, as an archive. */
  async giveOutProfile(): Promise<Readable> {
    await this.stop()
    return this.#userData.giveOut()
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    const chromium = await this.#chromium?.catch(() => undefined)
    await chromium?.close()
    await this.#display?.close()
  }

  async #keepRunning(): Promise<void> {
    const { events, config } = this.#options
    const first = await this.#launchFirst()
    events.becomeReady()
    this.#openStartPage(first, config.start_url)

    for (let current = first; ; ) {
      const how = await current.chromium.ended
      this.#endpoint = pendingEndpoint()
      current.chromium.kill()
      const change = this.#profileChange
      this.#profileChange = undefined
      if (this.#isStopping) return change?.done.reject(new Error('the browser is being stopped'))
      if (change) current = await this.#launchChanged(change)
      else {
        // A display that dies takes its browser along, and may be seen to be gone only after it.
        await immediate()
        if (this.#lostDisplay === undefined) this.#noteCrash('chromium', how)
        else this.#noteCrash('display', this.#lostDisplay)
        current = await this.#launch('blank')
      }
      this.#openStartPage(current, undefined)
    }
  }

  async #launchFirst(): Promise<RunningChromium> {
    const display = this.#ensureDisplay()
    display.catch(() => {}) // The launch waits for it once more.
    const tabs = await this.#firstTabs.promise
    if (this.#isStopping) throw new Error('the browser is being stopped')
    this.#hasBegun = true
    return this.#launch(tabs)
  }

  /** Launches with the profile or, if that does not work, as it was before. */
  async #launchChanged({ tabs, done }: ProfileChange): Promise<RunningChromium> {
    await this.#userData.replace()
    try {
      const running = await this.#launch(tabs)
      done.resolve()
      void this.#userData.forgetPrevious()
      return running
    } catch (error) {
      const failed = await this.#chromium?.catch(() => undefined)
      failed?.kill()
      await failed?.ended
      await this.#userData.takeBack()
      done.reject(error)
      return this.#launch('restore')
    }
  }

  /** Resolves when the first page has answered; from then on clients are let in. */
  async #launch(tabs: Tabs): Promise<RunningChromium> {
    this.#chromium = this.#launchWithDisplay(tabs)
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

  async #launchWithDisplay(tabs: Tabs): Promise<Chromium> {
    const { config, proxyPort } = this.#options
    await this.#ensureDisplay()
    return Chromium.launch({ config, userData: this.#userData, tabs, proxyPort, displayName: this.#display?.name })
  }

  async #ensureDisplay(): Promise<void> {
    if (this.#options.config.headless || this.#display) return
    this.#startingDisplay ??= this.#startDisplay().finally(() => {
      this.#startingDisplay = undefined
    })
    await this.#startingDisplay
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
  #openStartPage({ chromium, page }: RunningChromium, startUrl: string | undefined): void {
    const { pipe } = chromium
    const ignore = () => {}
    const { sessionId, url } = page
    // Without it the address bar of an empty page has the focus. Of restored tabs, the one that was in front stays there.
    if (url === 'about:blank') pipe.send('Page.bringToFront', {}, sessionId).catch(ignore)
    const target = url.startsWith(newTabPage) ? 'about:blank' : startUrl
    const opened = target ? pipe.send('Page.navigate', { url: target }, sessionId) : Promise.resolve({})
    void opened.catch(ignore).then(() => chromium.detach(sessionId))
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
