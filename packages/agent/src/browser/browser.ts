import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as immediate } from 'node:timers/promises'
import type { AgentConfig, ServiceName } from '@berth/contract/agent/agent-endpoints.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { AgentEvents } from '../agent-events.ts'
import type { ExtensionSet } from '../extensions/extension-set.ts'
import type { CdpPipe } from './cdp-pipe.ts'
import { Chromium, type DevToolsEndpoint } from './chromium.ts'
import { Display } from './display.ts'
import { resizeHeadful, resizeHeadless } from './resize.ts'
import { activeTab, tabsByActivity, withTarget } from './tabs.ts'

const maxCrashes = 5
const crashWindowMilliseconds = 30_000
const endpointLimitMilliseconds = 15_000
/** Far more than a start takes on a busy host. */
const startLimitMilliseconds = 45_000

interface RunningChromium {
  readonly chromium: Chromium
  /** CDP session of its first page. */
  readonly page: string
  /** Of its windows, but those that a client has given one of their own. */
  size: AgentConfig['viewport']
  /** False from the begin of a change of size to its end: one that breaks off leaves it so. */
  isSized: boolean
}

interface BrowserOptions {
  readonly config: AgentConfig
  readonly proxyPort: number
  readonly extensions: ExtensionSet
  readonly events: AgentEvents
  readonly logger: Logger
}

/**
 * The browser of the session, and its display. What crashes is started again, under the same addresses; a browser
 * that does not start, or crashes again and again, is given up.
 */
export class Browser {
  readonly #options: BrowserOptions
  /** What the next launch takes. */
  #config: AgentConfig
  #chromium: Promise<Chromium> | undefined
  /** Set while clients are let in. */
  #running: RunningChromium | undefined
  #display: Display | undefined
  #crashes: number[] = []
  #isStopping = false
  #hasBegun = false
  /** That Chromium ends next is meant, and no crash. */
  #isRelaunching = false
  /** How the display ended that was not replaced yet. */
  #lostDisplay: string | undefined
  /** Made anew with each end of Chromium: until the next one is ready, clients wait here. */
  #endpoint = pendingEndpoint()
  readonly #givenUp = Promise.withResolvers<string>()

  constructor(options: BrowserOptions) {
    this.#options = options
    this.#config = options.config
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

  /** Whether the first launch has begun. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** The line to the Chromium that runs, or to the next one while there is none. */
  async pipe(): Promise<CdpPipe> {
    const { pipe } = await this.running()
    return pipe
  }

  /** Ends Chromium as a person would, and resolves when the next one runs under the same addresses. */
  async relaunch(): Promise<void> {
    await this.endpoint() // One that is just being launched must not be taken for one that fails.
    const chromium = await this.#chromium
    this.#isRelaunching = true
    await chromium?.close()
    await this.endpoint()
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

  /** Changes the size of what runs; the next Chromium has it from its start. One at a time: the server sees to that. */
  async resize(viewport: AgentConfig['viewport']): Promise<void> {
    this.#config = { ...this.#config, viewport }
    const endpoint = await this.endpoint()
    const running = this.#current()
    const { chromium, size } = running
    if (running.isSized && size.width === viewport.width && size.height === viewport.height) return
    running.isSized = false
    const pages = { pipe: chromium.pipe, tabs: await tabsByActivity(endpoint), from: size, to: viewport }
    if (this.#config.headless) await resizeHeadless(pages)
    else await resizeHeadful({ ...pages, display: this.#display })
    running.size = viewport
    running.isSized = true
  }

  /** Resolves when the page that a person would see has been told to go there; what comes of it shows in the page. */
  async navigate(url: string): Promise<void> {
    const endpoint = await this.endpoint()
    const { pipe } = this.#current().chromium
    const tab = await activeTab(pipe, endpoint)
    if (tab === undefined) await pipe.send('Target.createTarget', { url })
    else await withTarget(pipe, tab, (session) => pipe.send('Page.navigate', { url }, session))
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    const chromium = await this.#chromium?.catch(() => undefined)
    await chromium?.close()
    await this.#display?.close()
  }

  #current(): RunningChromium {
    if (!this.#running) throw new Error('the browser has just ended')
    return this.#running
  }

  async #keepRunning(): Promise<void> {
    const { events, config, extensions } = this.#options
    await extensions.arrived
    this.#hasBegun = true
    const first = await this.#launch()
    events.becomeReady()
    this.#openStartPage(first, config.start_url)

    for (let current = first; ; ) {
      const how = await current.chromium.ended
      this.#endpoint = pendingEndpoint()
      this.#running = undefined
      current.chromium.kill()
      if (this.#isStopping) return
      // A display that dies takes its browser along, and may be seen to be gone only after it.
      await immediate()
      if (this.#isRelaunching) this.#isRelaunching = false
      else if (this.#lostDisplay === undefined) this.#noteCrash('chromium', how)
      else this.#noteCrash('display', this.#lostDisplay)
      current = await this.#launch()
      this.#openStartPage(current, undefined)
    }
  }

  /** Resolves when the first page has answered; from then on clients are let in. */
  async #launch(): Promise<RunningChromium> {
    const { viewport: size } = this.#config
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
    await this.#display?.resize(size)
    this.#running = { chromium, page, size, isSized: true }
    this.#endpoint.resolve(endpoint)
    return this.#running
  }

  async #launchWithDisplay(): Promise<Chromium> {
    const config = this.#config
    const { proxyPort, extensions } = this.#options
    if (!config.headless && !this.#display) await this.#startDisplay()
    await this.#display?.makeRoom(config.viewport)
    const { needPolicies } = extensions
    return Chromium.launch({ config, proxyPort, needPolicies, displayName: this.#display?.name })
  }

  async #startDisplay(): Promise<void> {
    const display = await Display.start(this.#config)
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
    await this.#options.extensions.loadInto(chromium.pipe)
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
