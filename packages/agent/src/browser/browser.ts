import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises'
import type { AgentConfig, BrowserConfiguration, ServiceName } from '@berth/contract/agent/agent-endpoints.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { ExtensionSet } from '../extensions/extension-set.ts'
import type { ServiceLogs } from '../logs/service-logs.ts'
import type { EventLog } from '../reporting/event-log.ts'
import type { StateFeed } from '../reporting/state-feed.ts'
import type { TelemetryCollector } from '../telemetry/telemetry-collector.ts'
import type { CdpPipe } from './cdp-pipe.ts'
import { endsNow } from './child-program.ts'
import { Chromium, type DevToolsEndpoint, type FirstPage } from './chromium.ts'
import { Display } from './display.ts'
import { rehearseProfile } from './profile/profile-archive.ts'
import { type Tabs, UserData } from './profile/user-data.ts'
import { activeTab, tabsByActivity, withTarget } from './targets/tabs.ts'
import { resizeHeadful, resizeHeadless } from './window/resize.ts'
import { makeResizable, resizedWindow } from './window/window-bounds.ts'

/** Enough for refusals, which arrive immediately. */
const navigationMilliseconds = 3_000
const maxCrashes = 5
const crashWindowMilliseconds = 30_000
const endpointLimitMilliseconds = 15_000
/** Far longer than a start takes on a busy host. */
const startLimitMilliseconds = 45_000

/** Where a client's connection is forwarded to. */
export interface ClientEndpoint {
  readonly endpoint: DevToolsEndpoint
  /** Absent if it is usable now. Rejects if it will not become usable. */
  readonly usable?: Promise<unknown>
}

interface RunningChromium {
  readonly chromium: Chromium
  readonly page: FirstPage
  /** Size of all windows except those that a client has resized. */
  size: AgentConfig['viewport']
  /** False while the size is being changed, and after a change that was interrupted. */
  isSized: boolean
}

/** An intended end of Chromium and what follows it. */
interface Relaunch {
  readonly tabs: Tabs
  /** Runs before the next launch. */
  readonly change?: () => Promise<void>
  /** Reverts the change if Chromium does not start with it. */
  readonly undo?: () => Promise<void>
}

interface PendingRelaunch extends Relaunch {
  readonly done: PromiseWithResolvers<void>
}

/** What Chromium opens when it has no tabs to restore. It would load remote content. */
const newTabPage = 'chrome://new-tab-page'

interface BrowserOptions {
  readonly config: AgentConfig
  readonly extensions: ExtensionSet
  readonly state: StateFeed
  readonly events: EventLog
  readonly telemetry: TelemetryCollector
  readonly serviceLogs: ServiceLogs
  readonly logger: Logger
}

/**
 * The browser of the session and its display. Both are restarted under the same addresses after a crash. A browser that
 * does not start, or crashes repeatedly, is given up.
 */
export class Browser {
  readonly #options: BrowserOptions
  /** Configuration for the next launch. */
  #config: AgentConfig
  /** Address to open when the first page is available. */
  #startUrl: string | undefined
  #hasFirstPage = false
  #chromium: Promise<Chromium> | undefined
  /** Launched before the profile that the first launch needs. */
  #ahead: Promise<Chromium | undefined> | undefined
  #hasNewPolicies = false
  /** Set while clients are admitted. */
  #running: RunningChromium | undefined
  #display: Display | undefined
  #startingDisplay: Promise<void> | undefined
  #crashes: number[] = []
  #isStopping = false
  #hasBegun = false
  /** Set when the next end of Chromium is intended, not a crash. */
  #pendingRelaunch: PendingRelaunch | undefined
  #lastRelaunch: Promise<void> = Promise.resolve()
  /** How the last display ended, until it is replaced. */
  #lostDisplay: string | undefined
  /** Changes that were answered before they were complete; clients wait for them. Never rejects. */
  #settled: Promise<void> = Promise.resolve()
  /** Replaced each time Chromium ends: clients wait for it until the next one is ready. */
  #endpoint = pendingEndpoint()
  /** Of the first Chromium of a session that waits for its launch; resolves with its first answer. */
  #early = Promise.withResolvers<DevToolsEndpoint>()
  #hasAnsweredEarly = false
  readonly #userData: UserData
  readonly #launched = Promise.withResolvers<void>()
  /** Settles when the first start may proceed: with the tabs of the expected profile, or an empty page. */
  readonly #firstTabs = Promise.withResolvers<Tabs>()
  /** Whether a profile has replaced the state of the running browser. */
  #hasReplacedState = false
  readonly #givenUp = Promise.withResolvers<string>()

  constructor(options: BrowserOptions) {
    this.#options = options
    this.#config = options.config
    this.#userData = new UserData(options.config.home_folder)
    if (!options.config.awaits_profile) this.#firstTabs.resolve('blank')
  }

  /** Resolves with the reason when the browser will not come back. */
  get givenUp(): Promise<string> {
    return this.#givenUp.promise
  }

  /** Launches the browser, reports `ready` when the first page has answered, and then keeps it running. */
  start(): void {
    const { headless, awaits_profile, awaits_extensions } = this.#config
    // The processor is idle while a display starts, and receiving the server's data needs the app.
    if (!headless || awaits_profile || awaits_extensions) this.#launched.resolve()
    this.#keepRunning().catch((error: Error) => {
      if (this.#isStopping) return
      this.#endpoint.reject(error)
      this.#givenUp.resolve(error.message)
    })
  }

  /** Resolves when the first Chromium was started, or its start waits for a display or for data from the server. */
  get launched(): Promise<void> {
    return this.#launched.promise
  }

  /** The DevTools server of the running Chromium, or of the next one while none is running. */
  async endpoint(): Promise<DevToolsEndpoint> {
    return Promise.race([this.#usable(), this.#notInTime()])
  }

  async #usable(): Promise<DevToolsEndpoint> {
    await this.#settled
    return this.#endpoint.promise
  }

  #notInTime(): Promise<never> {
    return tooLate(this.#hasFirstPage ? endpointLimitMilliseconds : startLimitMilliseconds, 'the browser is not ready')
  }

  /**
   * As `endpoint`, for a client whose commands wait until the browser is `usable`. Its handshake completes earlier
   * while a session waits for the first page.
   */
  async clientEndpoint(): Promise<ClientEndpoint> {
    if (this.#running) return { endpoint: await this.endpoint() }
    const usable = this.#usable()
    usable.catch(() => {}) // Connections that use it handle the rejection.
    const endpoint = await Promise.race([usable, this.#early.promise, this.#notInTime()])
    return { endpoint, usable }
  }

  /** Resolves when the browser matches its last configuration. */
  get settled(): Promise<void> {
    return this.#settled
  }

  /** Whether the first launch has begun. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** The pipe to the running Chromium, or to the next one while none is running. */
  async pipe(): Promise<CdpPipe> {
    const { pipe } = await this.running()
    return pipe
  }

  /** Ends Chromium as a person would, and resolves when the next one runs under the same addresses. */
  relaunch(next: Relaunch = { tabs: 'restore' }): Promise<void> {
    const relaunched = this.#lastRelaunch.then(() => this.#relaunch(next))
    this.#lastRelaunch = relaunched.catch(() => {})
    return relaunched
  }

  async #relaunch(next: Relaunch): Promise<void> {
    await this.#endpoint.promise // A launch in progress must not be mistaken for a failed one.
    const chromium = await this.#chromium
    const done = Promise.withResolvers<void>()
    this.#pendingRelaunch = { ...next, done }
    await chromium?.close()
    await done.promise
  }

  /**
   * Replaces the state of the browser with that of a profile; before the first launch, lets the launch proceed. A
   * running Chromium is restarted. Rejects if the profile cannot be used; the old state is then restored.
   */
  async loadProfile(archive: Readable, tabs: Tabs): Promise<void> {
    const userData = this.#userData
    await userData.unpack(archive, this.#config)
    if (!this.#hasBegun) {
      await userData.replace()
      return this.#firstTabs.resolve(tabs)
    }
    await this.relaunch({ tabs, change: () => userData.replace(), undo: () => userData.revert() })
    this.#hasReplacedState = true
  }

  /** Warms up the code that loads a profile. Does nothing unless the browser waits for one. */
  async rehearseProfile(): Promise<void> {
    if (!this.#hasBegun) await rehearseProfile(this.#config.run_folder)
  }

  /** Gives the browser the size that it has, as a warm-up. */
  async rehearseResize(): Promise<void> {
    const running = this.#current()
    running.isSized = false
    await this.#resize(running.size)
  }

  /** Restores the state that a profile has replaced in the running browser, if any. */
  async takeProfileBack(): Promise<void> {
    if (!this.#hasReplacedState) return
    await this.relaunch({ tabs: 'restore', change: () => this.#userData.revert() })
    this.#hasReplacedState = false
  }

  /** Stops the browser permanently and returns its state as an archive. */
  async giveOutProfile(): Promise<Readable> {
    await this.stop()
    return this.#userData.pack()
  }

  /** As `endpoint`, but opens an empty page if all pages have been closed. */
  async endpointWithPage(): Promise<DevToolsEndpoint> {
    const endpoint = await this.endpoint()
    try {
      if ((await tabsByActivity(endpoint)).length > 0) return endpoint
      await this.#current().chromium.pipe.send('Target.createTarget', { url: 'about:blank' })
      return endpoint
    } catch (error) {
      if (await endsNow([endpoint.ended])) return this.endpointWithPage()
      throw error
    }
  }

  /** The running Chromium, or the next one while none is running. */
  async running(): Promise<Chromium> {
    const { ended } = await this.endpoint()
    const chromium = await this.#chromium
    // It may have ended meanwhile, and the next one may have started.
    return chromium?.ended === ended ? chromium : this.running()
  }

  /** The name of the running display, or of the next one; only a headful session has one. */
  async displayName(): Promise<string> {
    const chromium = await this.running()
    if (this.#display) return this.#display.name
    // The display has ended, which ends its browser before both are restarted.
    await chromium.ended
    return this.displayName()
  }

  /** The configuration it runs with. */
  get config(): AgentConfig {
    return this.#config
  }

  /** The size of the running display. */
  get displaySize(): { readonly width: number; readonly height: number } {
    if (!this.#display) throw new Error('the display has just ended')
    return this.#display.size
  }

  /**
   * Changes the running browser and the configuration of later launches. Before the first launch, changes only that
   * configuration. Changes that clients wait for are applied in order.
   */
  async configure(configuration: BrowserConfiguration): Promise<void> {
    const { viewport, kiosk_mode, stealth, has_new_policies, launch, start_url, clients_wait } = configuration
    const earlier = this.#settled
    if (!clients_wait) await earlier
    const { headless, kiosk_mode: isKiosk } = this.#config
    this.#config = {
      ...this.#config,
      ...(viewport && { viewport }),
      ...(kiosk_mode !== undefined && { kiosk_mode }),
      ...(stealth !== undefined && !this.#hasBegun && { stealth }),
    }
    this.#hasNewPolicies ||= has_new_policies ?? false
    const mustRelaunch = this.#hasBegun && !headless && kiosk_mode !== undefined && kiosk_mode !== isKiosk
    if (mustRelaunch) await this.#relaunchUnused()
    const change = earlier.then(() => this.#change(viewport, start_url))
    if (clients_wait) this.#settled = change.catch(() => this.#changeByLaunch(start_url))
    else await change
    if (launch) this.#firstTabs.resolve('blank')
  }

  async #change(viewport: AgentConfig['viewport'] | undefined, startUrl: string | undefined): Promise<void> {
    if (this.#hasBegun && viewport) await this.#resize(viewport)
    if (startUrl === undefined) return
    if (this.#hasFirstPage) await this.#navigate(startUrl)
    else this.#startUrl = startUrl
  }

  /** Applies settings that require a launch. A browser that does not start is given up. */
  async #changeByLaunch(startUrl: string | undefined): Promise<void> {
    try {
      await this.#relaunchUnused()
      if (startUrl !== undefined) await this.#navigate(startUrl)
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'the browser could not be configured')
    }
  }

  /** For a browser that nobody has used yet: the next one must not show that there was another. */
  #relaunchUnused(): Promise<void> {
    return this.relaunch({ tabs: 'blank', change: () => this.#userData.clear() })
  }

  async #resize(viewport: AgentConfig['viewport']): Promise<void> {
    const endpoint = await this.#endpoint.promise
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

  /** Resolves when the page that a person would see has started to navigate; the page shows the outcome. */
  async #navigate(url: string): Promise<void> {
    const endpoint = await this.#endpoint.promise
    const { pipe } = this.#current().chromium
    const tab = await activeTab(pipe, endpoint)
    if (tab === undefined) await pipe.send('Target.createTarget', { url })
    else await withTarget(pipe, tab, (session) => navigate(pipe, session, url))
  }

  /** Work that must be done before a client's command; undefined for nearly all commands. */
  prepare({ method, params }: { readonly method?: unknown; readonly params?: unknown }): Promise<void> | undefined {
    const windowId = method === 'Browser.setWindowBounds' ? resizedWindow(params) : undefined
    const pipe = this.#running?.chromium.pipe
    if (windowId === undefined || !pipe) return undefined
    return makeResizable(pipe, windowId).catch(() => {}) // Chromium reports the error to the client.
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    const ahead = await this.#ahead
    ahead?.kill()
    const chromium = await this.#chromium?.catch(() => undefined)
    await chromium?.close()
    await this.#display?.close()
  }

  #current(): RunningChromium {
    if (!this.#running) throw new Error('the browser has just ended')
    return this.#running
  }

  async #keepRunning(): Promise<void> {
    const { state } = this.#options
    const first = await this.#launchFirst()
    this.#hasFirstPage = true
    state.becomeReady()
    this.#openStartPage(first, this.#startUrl)

    for (let current = first; ; ) {
      const how = await current.chromium.ended
      this.#endpoint = pendingEndpoint()
      this.#running = undefined
      current.chromium.kill()
      const relaunch = this.#pendingRelaunch
      this.#pendingRelaunch = undefined
      if (this.#isStopping) return relaunch?.done.reject(new Error('the browser is being stopped'))
      if (relaunch) current = await this.#launchChanged(relaunch)
      else {
        // When a display dies its browser ends too, and the display's end may be noticed later.
        await immediate()
        if (this.#lostDisplay === undefined) this.#noteCrash('chromium', how)
        else this.#noteCrash('display', this.#lostDisplay)
        current = await this.#launchAfterCrash()
      }
      this.#openStartPage(current, undefined)
    }
  }

  /** A Chromium that dies before its first page answers counts as another crash. */
  async #launchAfterCrash(): Promise<RunningChromium> {
    for (;;) {
      try {
        return await this.#launch('blank')
      } catch (error) {
        await this.#noteStartupCrash(error)
      }
    }
  }

  /** Rethrows the launch error if Chromium is still alive. */
  async #noteStartupCrash(error: unknown): Promise<void> {
    const failed = await this.#chromium?.catch(() => undefined)
    if (this.#isStopping || !failed || !(await endsNow([failed.ended]))) throw error
    failed.kill()
    this.#noteCrash('chromium', await failed.ended, 'startup')
  }

  /** Launches when everything that the launch needs is available. */
  async #launchFirst(): Promise<RunningChromium> {
    const display = this.#ensureDisplay()
    display.catch(() => {}) // The launch awaits it again.
    if (this.#config.awaits_profile) this.#ahead = this.#launchAhead(display)
    const [tabs] = await Promise.all([this.#firstTabs.promise, this.#options.extensions.arrived])
    if (this.#isStopping) throw new Error('the browser is being stopped')
    this.#hasBegun = true
    if (!this.#config.awaits_profile) return this.#launch(tabs)
    const launched = this.#launch(tabs).catch(async (error: unknown) => {
      // The session was told that its browser is ready, so the browser is replaced as after any crash.
      if (!this.#hasAnsweredEarly) throw error
      await this.#noteStartupCrash(error)
      return this.#launchAfterCrash()
    })
    const endActivity = this.#options.state.activity.begin()
    void this.#answerEarly()
    return launched.finally(endActivity)
  }

  /**
   * When a session waits for this launch only, it gets the browser with Chromium's first answer and waits for the page
   * afterwards.
   */
  async #answerEarly(): Promise<void> {
    const chromium = await this.#chromium?.catch(() => undefined)
    if (!chromium) return // The launch reports the error.
    let hasEnded = false
    void chromium.ended.then(() => {
      hasEnded = true
      this.#early = Promise.withResolvers()
    })
    const endpoint = await Promise.all([chromium.endpoint, chromium.answered]).then(
      ([found]) => found,
      () => undefined,
    )
    if (!endpoint || hasEnded || this.#isStopping) return
    this.#hasAnsweredEarly = true
    this.#early.resolve(endpoint)
    this.#options.state.becomeReady()
  }

  /** Launches after the change or, if that fails, without it. */
  async #launchChanged({ tabs, change, undo, done }: PendingRelaunch): Promise<RunningChromium> {
    try {
      await change?.()
      const running = await this.#launch(tabs)
      done.resolve()
      return running
    } catch (error) {
      try {
        if (!undo) throw error
        const failed = await this.#chromium?.catch(() => undefined)
        failed?.kill()
        await failed?.ended
        await undo()
        return await this.#launch('restore')
      } finally {
        done.reject(error)
      }
    }
  }

  /** Resolves when the first page has answered; clients are admitted from then on. */
  async #launch(tabs: Tabs): Promise<RunningChromium> {
    const { viewport: size } = this.#config
    this.#chromium = this.#launchWithDisplay(tabs).finally(() => this.#launched.resolve())
    const chromium = await this.#chromium
    const failure = failureOf(chromium)
    const page = await Promise.race([
      // When the pipe breaks, the error is how Chromium ended.
      chromium.firstPage().catch(() => failure),
      failure,
      tooLate(startLimitMilliseconds, 'Chromium has started, but its first page does not answer'),
    ])
    const endpoint = await Promise.race([chromium.endpoint, failure])
    // Without it the address bar of an empty page has the focus. Among restored tabs, the front one stays in front.
    // Chromium has done it before it answers what follows, so before any client can bring a page of its own to the
    // front.
    if (page.url === 'about:blank') chromium.pipe.send('Page.bringToFront', undefined, page.sessionId).catch(() => {})
    await this.#prepare(chromium)
    await this.#options.telemetry.attachTo(chromium)
    await this.#display?.resize(size)
    this.#running = { chromium, page, size, isSized: true }
    this.#endpoint.resolve(endpoint)
    return this.#running
  }

  async #launchWithDisplay(tabs: Tabs): Promise<Chromium> {
    await this.#ensureDisplay()
    await this.#display?.makeRoom(this.#config.viewport)
    const options = { ...this.#launchOptions(), tabs }
    return (await this.#resumeAhead(options)) ?? Chromium.launch(options)
  }

  #launchOptions() {
    const { extensions, serviceLogs } = this.#options
    return {
      config: this.#config,
      userData: this.#userData,
      needPolicies: extensions.needPolicies,
      displayName: this.#display?.name,
      onLine: (line: string) => serviceLogs.append('chromium', line),
    }
  }

  /** Most of a launch needs no profile. If it fails, the ordinary launch reports why. */
  async #launchAhead(display: Promise<void>): Promise<Chromium | undefined> {
    try {
      await display
      return await Chromium.launchAhead(this.#launchOptions())
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'the browser could not be launched ahead of its profile')
      return undefined
    }
  }

  /** Continues the launch ahead, or ends it if the browser needs another launch. */
  async #resumeAhead(options: Parameters<Chromium['resume']>[0]): Promise<Chromium | undefined> {
    const ahead = await this.#ahead
    this.#ahead = undefined
    if (ahead && !this.#hasNewPolicies && (await ahead.resume(options))) return ahead
    ahead?.kill()
    await ahead?.ended
    await this.#userData.stopAwaiting()
    return undefined
  }

  async #ensureDisplay(): Promise<void> {
    if (this.#config.headless || this.#display) return
    this.#startingDisplay ??= this.#startDisplay().finally(() => {
      this.#startingDisplay = undefined
    })
    await this.#startingDisplay
  }

  async #startDisplay(): Promise<void> {
    const display = await Display.start(this.#config, (line) => this.#options.serviceLogs.append('display', line))
    this.#display = display
    this.#lostDisplay = undefined
    void display.ended.then(async (how) => {
      this.#display = undefined
      this.#lostDisplay = how
      display.kill()
      // Its windows are gone, so the browser is useless.
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

  /** Not awaited: the session is available whatever the outcome. */
  #openStartPage({ chromium, page }: RunningChromium, startUrl: string | undefined): void {
    const { pipe } = chromium
    const ignore = () => {}
    const { sessionId, url } = page
    const target = url.startsWith(newTabPage) ? 'about:blank' : startUrl
    const opened = target ? navigate(pipe, sessionId, target) : Promise.resolve()
    opened.catch(ignore).then(() => chromium.detach(sessionId), ignore)
  }

  #noteCrash(service: ServiceName, how: string, phase: 'startup' | 'running' = 'running'): void {
    const { events, telemetry, logger } = this.#options
    logger.warn({ service, how }, 'a program crashed; restarting it')
    events.report({ event: 'service_crashed', service, detail: how })
    const now = performance.now()
    this.#crashes = [...this.#crashes.filter((at) => now - at < crashWindowMilliseconds), now]
    const isGivenUp = this.#crashes.length >= maxCrashes
    telemetry.emit({
      type: 'service_crashed',
      source: { kind: 'local_process' },
      data: { service_name: service, phase: isGivenUp ? 'gave_up' : phase },
    })
    if (isGivenUp) throw new Error(`${service} crashed ${maxCrashes} times: ${how}`)
  }
}

async function failureOf(chromium: Chromium): Promise<never> {
  const how = await chromium.ended
  throw new Error(`Chromium ended before its first page answered (${how})`)
}

/** Chromium responds when the site does; the page shows the outcome. */
async function navigate(pipe: CdpPipe, sessionId: string, url: string): Promise<void> {
  const sent = pipe.send('Page.navigate', { url }, { sessionId, limitMilliseconds: Number.POSITIVE_INFINITY })
  await Promise.race([sent, delay(navigationMilliseconds, undefined, { ref: false })])
}

function tooLate(limitMilliseconds: number, message: string): Promise<never> {
  return new Promise((_resolve, reject) => {
    setTimeout(() => reject(new Error(message)), limitMilliseconds).unref()
  })
}

function pendingEndpoint(): PromiseWithResolvers<DevToolsEndpoint> {
  const endpoint = Promise.withResolvers<DevToolsEndpoint>()
  endpoint.promise.catch(() => {}) // Callers that await it handle the rejection.
  return endpoint
}
