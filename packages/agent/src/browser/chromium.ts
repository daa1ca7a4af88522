import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { CdpPipe } from './cdp-pipe.ts'
import { ChildProgram } from './child-program.ts'
import { chromiumFlags, type FlagOptions } from './chromium-flags.ts'
import type { Tabs, UserData } from './user-data.ts'

/** Chromium may have much to write, and what it has not written when it is killed is lost. */
const closeLimitMilliseconds = 10_000
const busyPageMilliseconds = 5_000

/** Where Chromium's own DevTools server listens, on the loopback of the machine. */
export interface DevToolsEndpoint {
  readonly port: number
  /** Path of the browser's websocket: `/devtools/browser/<id>`. */
  readonly browserPath: string
  /** Settles when this Chromium has ended. */
  readonly ended: Promise<unknown>
}

export interface FirstPage {
  /** Of a CDP session on it. */
  readonly sessionId: string
  readonly url: string
}

interface ChromiumOptions {
  readonly config: AgentConfig
  readonly userData: UserData
  readonly tabs: Tabs
  readonly proxyPort: number
  readonly displayName: string | undefined
}

/** One run of Chromium, from launch to exit. */
export class Chromium {
  readonly pipe: CdpPipe
  /** How it ended, as one phrase. Never rejects. */
  readonly ended: Promise<string>
  readonly #program: ChildProgram
  readonly #tabs: Tabs
  readonly #endpoint = Promise.withResolvers<DevToolsEndpoint>()

  private constructor(flags: FlagOptions, environment: Record<string, string>) {
    this.#tabs = flags.tabs
    this.#program = new ChildProgram({
      program: flags.config.chromium_path,
      args: chromiumFlags(flags),
      environment,
      pipes: 2,
      onLine: (line) => this.#readLine(line),
    })
    const [, , , input, output] = this.#program.child.stdio
    this.pipe = new CdpPipe(input as Writable, output as Readable)
    this.ended = this.#program.ended
    this.#endpoint.promise.catch(() => {}) // Whoever waits for it sees the rejection.
    void this.ended.then((how) => this.#endpoint.reject(new Error(`Chromium ended: ${how}`)))
  }

  static async launch({ config, userData, tabs, proxyPort, displayName }: ChromiumOptions): Promise<Chromium> {
    const flags = { config, userDataFolder: userData.folder, tabs: await userData.prepare(tabs), proxyPort }
    const environment = {
      HOME: config.home_folder,
      PATH: '/usr/local/bin:/usr/bin:/bin',
      LANG: 'en_US.UTF-8',
      ...(displayName !== undefined && { DISPLAY: displayName }),
    }
    return new Chromium(flags, environment)
  }

  /** Resolves when the DevTools server listens. */
  get endpoint(): Promise<DevToolsEndpoint> {
    return this.#endpoint.promise
  }

  /** Resolves with the first page once it has answered. */
  async firstPage(): Promise<FirstPage> {
    const created = Promise.withResolvers<{ readonly targetId: string; readonly url: string }>()
    this.pipe.on('Target.targetCreated', ({ targetInfo }) => {
      const { type, targetId, url } = targetInfo as { type: string; targetId: string; url: string }
      if (type === 'page') created.resolve({ targetId, url })
    })
    await this.pipe.send('Target.setDiscoverTargets', { discover: true })
    const { targetId, url } = await created.promise
    await this.pipe.send('Target.setDiscoverTargets', { discover: false })
    const { sessionId } = await this.pipe.send('Target.attachToTarget', { targetId, flatten: true })
    const answered = this.pipe.send('Runtime.evaluate', { expression: '1' }, sessionId as string)
    if (this.#tabs === 'blank') await answered
    // A page of an earlier run may be on its way to another process, or compute for ever: the browser is there.
    else await Promise.race([answered.catch(() => {}), delay(busyPageMilliseconds, undefined, { ref: false })])
    return { sessionId: sessionId as string, url }
  }

  /** Lets Chromium write its state to disk and end; it is killed when it takes too long. */
  async close(): Promise<void> {
    this.pipe.send('Browser.close').catch(() => {}) // It may end before it answers.
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
