import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import Kernel from '@onkernel/sdk'
import { createCheckedFetch } from './checked-fetch.ts'

const launcher = join(import.meta.dirname, '../../berth')

export interface BerthOptions {
  /** Reused by a later start. When absent, a new folder is created and removed with this berth. */
  readonly dataFolder?: string
  readonly flags?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  /** Starts a process group of its own. Ctrl-C then reaches the test, which ends its sessions before the server. */
  readonly isOwnGroup?: boolean
}

export interface ReadyMessage {
  readonly event: 'ready'
  readonly base_url: string
  readonly api_key: string | null
  readonly pid: number
}

/** A berth that is started like a user starts it, and observed only from outside. */
export class Berth {
  readonly url: string
  readonly apiKey: string
  readonly pid: number
  readonly dataFolder: string
  readonly #child: ChildProcess
  readonly #log: string[]
  readonly #ownsFolder: boolean

  private constructor(
    ready: ReadyMessage,
    apiKey: string,
    dataFolder: string,
    child: ChildProcess,
    log: string[],
    ownsFolder: boolean,
  ) {
    this.url = ready.base_url
    this.apiKey = apiKey
    this.pid = ready.pid
    this.dataFolder = dataFolder
    this.#child = child
    this.#log = log
    this.#ownsFolder = ownsFolder
  }

  static readonly testKey = 'sk_e2e_0123456789abcdefghij'

  static async start({
    dataFolder,
    flags = [],
    environment = {},
    isOwnGroup = false,
  }: BerthOptions = {}): Promise<Berth> {
    const folder = dataFolder ?? (await mkdtemp(join(tmpdir(), 'berth-e2e-')))
    const args = ['serve', '--json', '--port', '0', '--data-dir', folder, ...flags]
    const child = launch(args, { BERTH_API_KEY: Berth.testKey, ...environment }, isOwnGroup)
    const log: string[] = []
    createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', (line) => log.push(line))
    const ready = await Promise.race([readReady(child), once(child, 'exit').then(() => undefined)])
    if (!ready) throw new Error(`berth did not start:\n${log.join('\n')}`)
    return new Berth(ready, environment.BERTH_API_KEY ?? Berth.testKey, folder, child, log, dataFolder === undefined)
  }

  /** Everything that the server logged. */
  get log(): string {
    return this.#log.join('\n')
  }

  /** The official client. Every response is validated against the OpenAPI document. */
  async client(): Promise<Kernel> {
    return new Kernel({
      apiKey: this.apiKey,
      baseURL: this.url,
      maxRetries: 0,
      fetch: await createCheckedFetch(this.url),
    })
  }

  /** Sends a plain request with the key. */
  request(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${this.apiKey}`, ...init.headers },
    })
  }

  /** Sends the signal to the server and waits for it to exit. */
  async signal(signal: NodeJS.Signals): Promise<number | null> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return this.#child.exitCode
    const ended = once(this.#child, 'exit')
    process.kill(this.pid, signal)
    const [code] = (await ended) as [number | null]
    return code
  }

  /** Ends server and sessions and removes the data folder. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const client = new Kernel({ apiKey: this.apiKey, baseURL: this.url })
      const sessions = await Array.fromAsync(client.browsers.list())
      await Promise.all(sessions.map(({ session_id }) => client.browsers.deleteByID(session_id).catch(() => {})))
    }
    await this.signal('SIGTERM')
    if (this.#ownsFolder) await rm(this.dataFolder, { recursive: true, force: true })
  }
}

/** Runs `./berth` with a minimal environment. */
export function launch(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  isOwnGroup = false,
): ChildProcess {
  return spawn(launcher, args, {
    detached: isOwnGroup,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environment },
  })
}

async function readReady(child: ChildProcess): Promise<ReadyMessage | undefined> {
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    if (line.startsWith('{')) return JSON.parse(line)
  }
  return undefined
}
