import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import { CdpPipe } from './cdp-pipe.ts'
import { ChildProgram } from './child-program.ts'
import { chromiumFlags } from './chromium-flags.ts'
import { writePreferences } from './preferences.ts'

const closeLimitMilliseconds = 5_000

/** Where Chromium's own DevTools server listens, on the loopback of the machine. */
export interface DevToolsEndpoint {
  readonly port: number
  /** Path of the browser's websocket: `/devtools/browser/<id>`. */
  readonly browserPath: string
  /** Settles when this Chromium has ended. */
  readonly ended: Promise<unknown>
}

interface ChromiumOptions {
  readonly config: AgentConfig
  readonly proxyPort: number
  /** Whether it fetches extensions that policies name. */
  readonly needPolicies: boolean
  readonly displayName: string | undefined
}

/** One run of Chromium, from launch to exit. */
export class Chromium {
  readonly pipe: CdpPipe
  /** How it ended, as one phrase. Never rejects. */
  readonly ended: Promise<string>
  readonly #program: ChildProgram
  readonly #endpoint = Promise.withResolvers<DevToolsEndpoint>()

  private constructor(config: AgentConfig, args: readonly string[], environment: Record<string, string>) {
    this.#program = new ChildProgram({
      program: config.chromium_path,
      args,
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

  static async launch({ config, proxyPort, needPolicies, displayName }: ChromiumOptions): Promise<Chromium> {
    const profileFolder = join(config.home_folder, '.config', 'chromium')
    await writePreferences(config, profileFolder)
    const environment = {
      HOME: config.home_folder,
      PATH: '/usr/local/bin:/usr/bin:/bin',
      LANG: 'en_US.UTF-8',
      ...(displayName !== undefined && { DISPLAY: displayName }),
    }
    return new Chromium(config, chromiumFlags(config, profileFolder, { proxyPort, needPolicies }), environment)
  }

  /** Resolves when the DevTools server listens. */
  get endpoint(): Promise<DevToolsEndpoint> {
    return this.#endpoint.promise
  }

  /** Resolves with the CDP session of the first page once that page has answered. */
  async firstPage(): Promise<string> {
    const created = Promise.withResolvers<string>()
    this.pipe.on('Target.targetCreated', ({ targetInfo }) => {
      const { type, targetId } = targetInfo as { type: string; targetId: string }
      if (type === 'page') created.resolve(targetId)
    })
    await this.pipe.send('Target.setDiscoverTargets', { discover: true })
    const targetId = await created.promise
    await this.pipe.send('Target.setDiscoverTargets', { discover: false })
    const { sessionId } = await this.pipe.send('Target.attachToTarget', { targetId, flatten: true })
    await this.pipe.send('Runtime.evaluate', { expression: '1' }, sessionId as string)
    return sessionId as string
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
