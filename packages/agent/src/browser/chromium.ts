import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { CdpPipe } from './cdp-pipe.ts'
import { ChildProgram, endsNow } from './child-program.ts'
import { chromiumFlags, type FlagOptions } from './chromium-flags.ts'
import type { Tabs, UserData } from './profile/user-data.ts'

/** Chromium may have a lot to write, and loses unwritten data when it is killed. */
const closeLimitMilliseconds = 10_000
const askAgainMilliseconds = 1_000
const busyPageMilliseconds = 3_000

/** Where Chromium's own DevTools server listens, on the loopback of the machine. */
export interface DevToolsEndpoint {
  readonly port: number
  /** Path of the browser's websocket: `/devtools/browser/<id>`. */
  readonly browserPath: string
  /** Settles when this Chromium has ended. */
  readonly ended: Promise<unknown>
}

export interface FirstPage {
  /** Of a CDP session with it. */
  readonly sessionId: string
  /** Empty if it has not answered. */
  readonly url: string
}

interface ChromiumOptions {
  readonly config: AgentConfig
  readonly userData: UserData
  readonly tabs: Tabs
  /** Whether it downloads extensions named by policies. */
  readonly needPolicies: boolean
  readonly displayName: string | undefined
  /** Called with each line of its output. */
  readonly onLine: (line: string) => void
}

/** One run of Chromium, from launch to exit. */
export class Chromium {
  readonly pipe: CdpPipe
  /** How it ended, as one phrase. Never rejects. */
  readonly ended: Promise<string>
  readonly #program: ChildProgram
  readonly #flags: FlagOptions
  /** Pages whose renderer has crashed. */
  readonly #crashed = new Set<string>()
  readonly #endpoint = Promise.withResolvers<DevToolsEndpoint>()
  readonly #answered = Promise.withResolvers<void>()

  private constructor(flags: FlagOptions, environment: Record<string, string>, onLine: (line: string) => void) {
    this.#flags = flags
    this.#program = new ChildProgram({
      program: flags.config.chromium_path,
      args: chromiumFlags(flags),
      environment,
      pipes: 2,
      onLine: (line) => {
        onLine(line)
        this.#readLine(line)
      },
    })
    const [, , , input, output] = this.#program.child.stdio
    this.pipe = new CdpPipe(input as Writable, output as Readable)
    this.ended = this.#program.ended
    this.#endpoint.promise.catch(() => {}) // Callers that await it handle the rejection.
    void this.ended.then((how) => this.#endpoint.reject(new Error(`Chromium ended: ${how}`)))
  }

  static async launch(options: ChromiumOptions): Promise<Chromium> {
    const { config, userData } = options
    return Chromium.#start({ ...options, tabs: await userData.prepare(config, options.tabs) })
  }

  /** Launches a browser that waits for the state of a profile. By then it has done everything that needs no state. */
  static async launchAhead(options: Omit<ChromiumOptions, 'tabs'>): Promise<Chromium> {
    await options.userData.prepareAhead()
    return Chromium.#start({ ...options, tabs: 'restore' })
  }

  static #start({ userData, displayName, onLine, ...options }: ChromiumOptions): Chromium {
    const environment = {
      HOME: options.config.home_folder,
      PATH: '/usr/local/bin:/usr/bin:/bin',
      ...(displayName !== undefined && { DISPLAY: displayName }),
    }
    return new Chromium({ ...options, userDataFolder: userData.folder }, environment, onLine)
  }

  /** Continues a launch ahead with the current state. Returns false if a launch with these options would be another one. */
  async resume({ userData, config, tabs, needPolicies }: ChromiumOptions): Promise<boolean> {
    if (tabs === 'blank' || (await endsNow([this.ended], 0))) return false
    const wanted = { config, tabs: await userData.prepare(config, tabs), needPolicies, userDataFolder: userData.folder }
    if (!isDeepStrictEqual(fixedAtLaunch(wanted), fixedAtLaunch(this.#flags))) return false
    await userData.release()
    return true
  }

  /** Resolves when the DevTools server listens. */
  get endpoint(): Promise<DevToolsEndpoint> {
    return this.#endpoint.promise
  }

  /**
   * Resolves with its answer to the first command of `firstPage`: by then it has loaded its state, and is opening its
   * window.
   */
  get answered(): Promise<void> {
    return this.#answered.promise
  }

  /**
   * Resolves with the page that answers first. Of restored tabs that is the one in front: Chromium loads background
   * tabs later. A page in an endless loop never answers; the browser counts as ready without it.
   */
  async firstPage(): Promise<FirstPage> {
    const answered = Promise.withResolvers<FirstPage>()
    let hasAnswered = false
    const pages: FirstPage[] = []
    const unwatch = this.pipe.on('Target.targetCreated', ({ targetInfo }) => {
      const { type, targetId } = targetInfo as { type: string; targetId: string }
      if (type !== 'page') return
      this.#attach(targetId, pages, () => hasAnswered).then(answered.resolve, (error: Error) => {
        // A restored page may be changing its process, or be gone.
        if (this.#flags.tabs === 'blank') answered.reject(error)
      })
    })
    const unwatchCrashes = this.pipe.on('Target.targetCrashed', ({ targetId }) => {
      this.#crashed.add(targetId)
    })
    await this.pipe.send('Target.setDiscoverTargets', { discover: true })
    this.#answered.resolve()
    const first = await this.#orBusy(answered.promise, pages)
    hasAnswered = true
    unwatchCrashes()
    unwatch() // Other clients discover targets later; those are not our concern.
    await this.pipe.send('Target.setDiscoverTargets', { discover: false })
    for (const { sessionId } of pages.filter((page) => page !== first)) this.detach(sessionId)
    return first
  }

  detach(sessionId: string): void {
    this.pipe.send('Target.detachFromTarget', { sessionId }).catch(() => {}) // The page is gone.
  }

  async #attach(targetId: string, pages: FirstPage[], isOver: () => boolean): Promise<FirstPage> {
    const { sessionId } = await this.pipe.send('Target.attachToTarget', { targetId, flatten: true })
    const page = { sessionId, url: '' }
    pages.push(page)
    const asked = this.pipe.send('Runtime.evaluate', { expression: 'location.href' }, sessionId).catch(() => undefined)
    // Programs of the session may connect to the page as soon as the DevTools server is up. Chromium can then lose the
    // command, or even the page's process. So the command is repeated, in a new process if necessary; attaching to a
    // closed page fails.
    const lost = delay(askAgainMilliseconds, undefined, { ref: false })
    const answer = await (this.#flags.tabs === 'blank' ? Promise.race([asked, lost]) : asked)
    if (isOver()) {
      this.detach(sessionId)
      return page
    }
    if (!answer) {
      if (this.#crashed.delete(targetId)) await this.pipe.send('Page.navigate', { url: 'about:blank' }, sessionId)
      return this.#attach(targetId, pages, isOver)
    }
    page.url = String(answer.result.value)
    return page
  }

  async #orBusy(answered: Promise<FirstPage>, pages: readonly FirstPage[]): Promise<FirstPage> {
    if (this.#flags.tabs === 'blank') return answered
    const busy = delay(busyPageMilliseconds, undefined, { ref: false }).then(() => pages[0] ?? answered)
    return Promise.race([answered, busy])
  }

  /** Lets Chromium save its state and exit; kills it if that takes too long. */
  async close(): Promise<void> {
    this.pipe.send('Browser.close').catch(() => {}) // It may exit before it responds.
    await Promise.race([this.ended, delay(closeLimitMilliseconds)])
    this.kill()
    await this.ended
  }

  kill(): void {
    this.#program.kill()
  }

  #readLine(line: string): void {
    const [, port, browserPath] = /^DevTools listening on ws:\/\/127\.0\.0\.1:(\d+)(\/\S+)/.exec(line) ?? []
    if (port && browserPath) this.#endpoint.resolve({ port: Number(port), browserPath, ended: this.ended })
  }
}

/** The settings that a running browser cannot change. The size of a headful browser is not among its flags. */
function fixedAtLaunch(options: FlagOptions): readonly unknown[] {
  return [chromiumFlags(options), options.config.viewport]
}
