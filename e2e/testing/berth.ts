import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import Kernel from '@onkernel/sdk'
import { createCheckedFetch } from './checked-fetch.ts'
import { clusterEnvironment } from './cluster-environment.ts'
import { rememberLog } from './machine-of.ts'
import { hostName } from './pages.ts'
import type { SharedBerths } from './shared-berths.ts'

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

/** Number of servers behind the address that a test uses: ./berth test --servers 2. */
const serverCount = Number(process.env.BERTH_TEST_SERVERS ?? 1)

/** For tests of behaviour of a single server, or of its processes, folders and log. The reason names it. */
export function oneServerOnly(reason: string): { readonly skip: string | false } {
  return { skip: serverCount > 1 && `with one server only: ${reason}` }
}

/** A connection per request, so that each reaches another server. */
const connectionHeaders: Readonly<Record<string, string>> = serverCount > 1 ? { connection: 'close' } : {}

/** Resources of a berth other than its own server, which end after it. */
type Backing = AsyncDisposable

/** A berth that is started like a user starts it, and observed only from outside. */
export class Berth {
  /** With several servers, the address at which each connection reaches another one. */
  url: string
  readonly apiKey: string
  readonly pid: number
  readonly dataFolder: string
  readonly #child: ChildProcess
  readonly #log: string[]
  readonly #ownsFolder: boolean
  #backing: Backing | undefined
  /** Whether it uses the server of this process, which other test files use later. */
  readonly #isBorrowed: boolean

  private constructor(
    ready: ReadyMessage,
    apiKey: string,
    dataFolder: string,
    child: ChildProcess,
    log: string[],
    ownsFolder: boolean,
    isBorrowed = false,
  ) {
    this.url = ready.base_url
    this.apiKey = apiKey
    this.pid = ready.pid
    this.dataFolder = dataFolder
    this.#child = child
    this.#log = log
    this.#ownsFolder = ownsFolder
    this.#isBorrowed = isBorrowed
  }

  static readonly testKey = 'sk_e2e_0123456789abcdefghij'

  /** The first of several servers, by data folder. */
  static readonly #firsts = new Map<string, { readonly berth: Berth; readonly shared: SharedBerths<Berth> }>()

  /** A test with a data folder of its own uses one server. */
  static async start(options: BerthOptions = {}): Promise<Berth> {
    const { dataFolder, ...others } = options
    const before = dataFolder === undefined ? undefined : Berth.#firsts.get(dataFolder)
    if (!before && (serverCount < 2 || dataFolder !== undefined)) return Berth.startOne(options)
    // Loaded for several servers: a store for their blobs takes longer to load than all else here.
    const { SharedBerths } = await import('./shared-berths.ts')
    const shared = before?.shared ?? (await SharedBerths.open(Berth.startOne))
    const environment = { BERTH_PUBLIC_URL: shared.url, ...options.environment }
    const berth = await shared.start({ ...others, environment }, before?.berth)
    berth.url = shared.url
    Berth.#firsts.set(berth.dataFolder, { berth, shared })
    if (before) return berth
    for (let count = 1; count < serverCount; count++) await shared.start({ ...others, environment })
    berth.#backing = shared
    return berth
  }

  static #ofProcess: Promise<Berth> | undefined
  static #borrowers = 0

  /**
   * A project of its own in the berth of this process, for tests that use neither its options nor its organization. Its
   * sessions reach every port of this host's loopback by its name. With several servers, each file starts its own.
   */
  static async borrow(): Promise<Berth> {
    const environment = { BERTH_EGRESS_ALLOW: hostName }
    if (serverCount > 1) return Berth.start({ environment })
    if ((await Berth.#ofProcess)?.hasEnded) Berth.#ofProcess = undefined
    Berth.#ofProcess ??= Berth.#startForProcess(environment)
    const berth = await Berth.#ofProcess
    const client = new Kernel({ apiKey: berth.apiKey, baseURL: berth.url })
    const { id } = await client.projects.create({ name: randomUUID() })
    const { key } = await client.apiKeys.create({ name: id, project_id: id })
    Berth.#borrowers += 1
    const ready: ReadyMessage = { event: 'ready', base_url: berth.url, api_key: null, pid: berth.pid }
    return new Berth(ready, key, berth.dataFolder, berth.#child, berth.#log, false, true)
  }

  /** Ends with the process, but does not keep it running. */
  static async #startForProcess(environment: Readonly<Record<string, string>>): Promise<Berth> {
    const berth = await Berth.startOne({ environment })
    berth.#child.unref()
    for (const output of [berth.#child.stdout, berth.#child.stderr]) (output as Socket).unref()
    process.on('beforeExit', end)
    return berth

    // The hooks of the test runner may run then, and dispose borrowed berths.
    function end(): void {
      if (Berth.#borrowers > 0) return
      process.off('beforeExit', end)
      berth.#child.ref()
      void berth[Symbol.asyncDispose]()
    }
  }

  static async startOne({
    dataFolder,
    flags = [],
    environment = {},
    isOwnGroup = false,
  }: BerthOptions = {}): Promise<Berth> {
    const folder = dataFolder ?? (await mkdtemp(join(tmpdir(), 'berth-e2e-')))
    await fillFromTemplate(folder)
    const args = ['serve', '--json', '--port', '0', '--data-dir', folder, ...flags]
    const child = launch(args, { BERTH_API_KEY: Berth.testKey, ...environment }, isOwnGroup)
    const log: string[] = []
    rememberLog(log)
    createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', (line) => log.push(line))
    const ready = await Promise.race([readReady(child), once(child, 'exit').then(() => undefined)])
    if (!ready) throw new Error(`berth did not start:\n${log.join('\n')}`)
    return new Berth(ready, environment.BERTH_API_KEY ?? Berth.testKey, folder, child, log, dataFolder === undefined)
  }

  /** Everything that the server logged. */
  get log(): string {
    return this.#log.join('\n')
  }

  /**
   * The official client. Every response is validated against the OpenAPI document. `directly` names the subresources that
   * it calls at the session's own address, if they are not the usual ones.
   */
  async client({ directly }: { readonly directly?: string } = {}): Promise<Kernel> {
    const options = { apiKey: this.apiKey, baseURL: this.url, maxRetries: 0, defaultHeaders: connectionHeaders }
    const checked = { ...options, fetch: await createCheckedFetch(this.url) }
    return directly === undefined ? new Kernel(checked) : createRouted(directly, checked)
  }

  /** Sends a plain request with the key. */
  request(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${this.apiKey}`, ...connectionHeaders, ...init.headers },
    })
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  /** Sends the signal to the server and waits for it to exit. */
  async signal(signal: NodeJS.Signals): Promise<number | null> {
    if (this.hasEnded) return this.#child.exitCode
    const ended = once(this.#child, 'exit')
    process.kill(this.pid, signal)
    const [code] = (await ended) as [number | null]
    return code
  }

  /** Stops server and sessions and removes the data folder. If borrowed, only ends its sessions. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.hasEnded) {
      const client = new Kernel({ apiKey: this.apiKey, baseURL: this.url })
      const pools = await Array.fromAsync(client.browserPools.list())
      await Promise.all(pools.map(({ id }) => client.browserPools.delete(id, { force: true })))
      const sessions = await Array.fromAsync(client.browsers.list())
      await Promise.all(sessions.map(({ session_id }) => client.browsers.deleteByID(session_id).catch(() => {})))
    }
    if (this.#isBorrowed) {
      Berth.#borrowers -= 1
      return
    }
    await this.signal('SIGTERM')
    const backing = this.#backing
    this.#backing = undefined
    await backing?.[Symbol.asyncDispose]()
    if (this.#ownsFolder) await rm(this.dataFolder, { recursive: true, force: true })
  }
}

/**
 * A test run has a data folder with an empty database (data-folder-setup.ts), because creating it takes most of the
 * processor time of a first start. Tests of a first start call `launch`, or name a folder that does not exist.
 */
export async function fillFromTemplate(folder: string): Promise<void> {
  const template = process.env.BERTH_TEST_DATA_FOLDER
  const entries = await readdir(folder).catch(() => undefined)
  if (template === undefined || entries?.length !== 0) return
  await promisify(execFile)('cp', ['--archive', '--reflink=auto', `${template}/.`, folder])
}

/**
 * The client reads from the environment, once, which subresources it calls directly. Other files share the environment.
 */
export function createRouted(subresources: string, options: ConstructorParameters<typeof Kernel>[0]): Kernel {
  process.env.KERNEL_BROWSER_ROUTING_SUBRESOURCES = subresources
  try {
    return new Kernel(options)
  } finally {
    Reflect.deleteProperty(process.env, 'KERNEL_BROWSER_ROUTING_SUBRESOURCES')
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
    // Machines of a reserve would take processor time from the tested ones.
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      BERTH_RESERVE: 'off',
      ...clusterEnvironment,
      ...environment,
    },
  })
}

async function readReady(child: ChildProcess): Promise<ReadyMessage | undefined> {
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    if (line.startsWith('{')) return JSON.parse(line)
  }
  return undefined
}
