import { spawn } from 'node:child_process'
import { chown, mkdir, open } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { MachineId } from '@berth/contract/common/ids.ts'
import {
  type EgressPolicy,
  type EgressProbe,
  type EgressProbeResult,
  egressContractVersion,
} from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { KeyedQueue } from '@berth/runtime/async/keyed-queue.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { bundlePrograms } from '../host/bundles/program-bundle.ts'
import { confinedCommand } from '../host/confined-process.ts'
import { connectUnixSocket } from '../host/connect-unix-socket.ts'
import type { HostFolders } from '../host/host-folders.ts'
import { findOwnProcesses } from '../host/own-processes.ts'
import type { ServiceUser } from '../host/service-user.ts'
import { ownSessionSocketPath } from '../own-session/own-session-path.ts'
import { EgressClient } from './egress-client.ts'
import type { EgressLink, GentleChange, RoutedMachine } from './egress-link.ts'

const startLimitMilliseconds = 15_000
/** How long egress may take to stop when requested. */
const endLimitMilliseconds = 7_000
const retryMilliseconds = 20
const restartPauseMilliseconds = 250
/** Errors which mean that nothing listens or that the listener has just exited. */
const goneCodes = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE']
const egressFolder = join(import.meta.dirname, '../../../egress/src')
const programs = {
  entries: { main: join(egressFolder, 'main.ts'), worker: join(egressFolder, 'workers/worker.ts') },
  packages: [],
}

interface EgressDaemonOptions {
  readonly folders: HostFolders
  /** Contains the sockets on which egress listens for the machines. */
  readonly socketsFolder: string
  readonly user: ServiceUser | undefined
  readonly logger: Logger
}

interface Route {
  readonly socketPath: string
  readonly socketMode: number
  readonly settings: EgressSettings
}

/**
 * The egress process of this host. It survives the server, so that pages of active sessions keep their connections
 * while the server restarts. When egress exits, it is restarted and receives its configuration again.
 */
export class EgressDaemon implements EgressLink {
  readonly #folders: HostFolders
  readonly #socketsFolder: string
  readonly #user: ServiceUser | undefined
  readonly #logger: Logger
  readonly #client: EgressClient
  readonly #controlFolder: string
  readonly #controlSocket: string
  /** The socket on which the server accepts connections from sessions to berth's own addresses. */
  readonly #ownSessionSocket: string
  readonly #routes = new Map<MachineId, Route>()
  /** Sends updates of a machine one at a time. The last one wins. */
  readonly #updates = new KeyedQueue<MachineId>()
  readonly #closing = new AbortController()
  #policy: EgressPolicy | undefined
  #isUp = false

  constructor({ folders, socketsFolder, user, logger }: EgressDaemonOptions) {
    this.#folders = folders
    this.#socketsFolder = socketsFolder
    this.#user = user
    this.#logger = logger
    this.#controlFolder = join(folders.runtime, 'egress')
    this.#controlSocket = join(this.#controlFolder, 'control.sock')
    this.#ownSessionSocket = ownSessionSocketPath(folders)
    this.#client = new EgressClient(() => connectUnixSocket(this.#controlSocket))
  }

  get isUp(): boolean {
    return this.#isUp
  }

  /** Adopts a running egress of this build, or starts one. Then keeps it running. */
  async start(): Promise<void> {
    const folder = await bundlePrograms(programs, join(this.#folders.data, 'egress'))
    const build = basename(folder)
    const running = await this.#client.state().catch(() => undefined)
    if (running && (running.contract_version !== egressContractVersion || running.build !== build)) {
      this.#logger.info('replacing egress of another version')
      await this.#end()
    }
    if (!(await this.#isResponding())) await this.#launch(folder)
    await this.#sendAll()
    const { ended } = await this.#client.holdLifeline(this.#closing.signal)
    this.#isUp = true
    void ended.then(() => this.#restart())
  }

  /** Detaches from egress. It continues to serve running machines and exits when there are none. */
  async close(): Promise<void> {
    this.#closing.abort()
    const running = await this.#client.state().catch(() => undefined)
    if (running?.machines.length === 0) await this.#client.end().catch(() => {})
  }

  async setPolicy(policy: Omit<EgressPolicy, 'own_session_socket'>): Promise<void> {
    this.#policy = { ...policy, own_session_socket: this.#ownSessionSocket }
    await this.#client.putPolicy(this.#policy)
  }

  async openRoute({ id, egressSocket: { path, mode } }: RoutedMachine, settings: EgressSettings): Promise<void> {
    this.#routes.set(id, { socketPath: path, socketMode: mode, settings })
    await this.#retryUntilUp(() => this.#sendRoute(id))
  }

  async closeRoute(machineId: MachineId): Promise<void> {
    this.#routes.delete(machineId)
    await this.#retryUntilUp(() => this.#updates.run(machineId, () => this.#client.deleteMachine(machineId)))
  }

  async listRoutes(): Promise<readonly MachineId[]> {
    return (await this.#client.state()).machines as MachineId[]
  }

  async setSettings(machineId: MachineId, settings: EgressSettings, gently?: GentleChange): Promise<void> {
    const route = this.#routes.get(machineId)
    if (!route) throw new BerthError('session_unreachable')
    this.#routes.set(machineId, { ...route, settings })
    await this.#retryUntilUp(() => this.#sendRoute(machineId, gently)).catch(throwUnavailable)
  }

  async probe(probe: EgressProbe): Promise<EgressProbeResult> {
    let result: EgressProbeResult | undefined
    await this.#retryUntilUp(async () => {
      result = await this.#client.probe(probe)
    }).catch(throwUnavailable)
    return result as EgressProbeResult
  }

  /** Sends the current route of the machine. Does nothing if the route was closed meanwhile. */
  #sendRoute(machineId: MachineId, gently?: GentleChange): Promise<void> {
    return this.#updates.run(machineId, async () => {
      const route = this.#routes.get(machineId)
      if (!route) return
      await this.#client.putMachine(machineId, {
        socket_path: route.socketPath,
        socket_mode: route.socketMode,
        settings: route.settings,
        ...(gently && { gently: { after_request_to: gently.afterRequestTo } }),
      })
    })
  }

  /** Retries while egress restarts. Sending a route twice is harmless. */
  async #retryUntilUp(tell: () => Promise<void>): Promise<void> {
    const deadline = performance.now() + startLimitMilliseconds
    for (;;) {
      try {
        return await tell()
      } catch (error) {
        const isGone = goneCodes.includes((error as NodeJS.ErrnoException).code ?? '')
        if (!isGone || this.#closing.signal.aborted || performance.now() > deadline) throw error
      }
      await delay(retryMilliseconds)
    }
  }

  async #sendAll(): Promise<void> {
    if (this.#policy) await this.#client.putPolicy(this.#policy)
    // Iterates over the map itself and not a copy, so that routes that are closed meanwhile are skipped.
    for (const id of this.#routes.keys()) await this.#sendRoute(id)
  }

  async #restart(): Promise<void> {
    this.#isUp = false
    while (!this.#closing.signal.aborted) {
      this.#logger.error('egress has exited; restarting it')
      try {
        await this.start()
        return
      } catch (error) {
        this.#logger.error({ err: error }, 'egress did not start')
        await delay(restartPauseMilliseconds, undefined, { signal: this.#closing.signal }).catch(() => {})
      }
    }
  }

  /** Asks egress to stop. If it does not, kills the process that the kernel reports for the socket. */
  async #end(): Promise<void> {
    await this.#client.end().catch(() => {})
    const isGone = async () => !(await this.#isResponding())
    await this.#waitUntil(isGone, endLimitMilliseconds).catch(async () => {
      this.#logger.warn('egress does not stop; killing it')
      for (const pid of await findOwnProcesses((args) => args.includes(this.#controlSocket)))
        process.kill(pid, 'SIGKILL')
      await this.#waitUntil(isGone)
    })
  }

  async #launch(programsFolder: string): Promise<void> {
    await mkdir(this.#controlFolder, { recursive: true, mode: 0o700 })
    if (this.#user) await chown(this.#controlFolder, this.#user.uid, this.#user.gid)
    await mkdir(dirname(this.#ownSessionSocket), { recursive: true, mode: 0o755 })
    const command = await confinedCommand({
      program: process.execPath,
      args: [
        join(programsFolder, 'main.mjs'),
        ...['--control-socket', this.#controlSocket, '--build', basename(programsFolder)],
        ...['--log-level', this.#logger.level, '--log-format', 'json'],
      ],
      user: this.#user,
      readOnly: [programsFolder, process.execPath, dirname(this.#ownSessionSocket)],
      writable: [this.#controlFolder, this.#socketsFolder],
      seesOwnProcessesOnly: true,
    })
    await using log = await open(join(this.#folders.data, 'egress.log'), 'a', 0o600)
    const child = spawn(command.program, command.args, {
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
      env: { PATH: '/usr/bin:/bin' },
    })
    child.unref()
    const failed = new Promise<never>((_resolve, reject) => {
      child.once('error', reject)
      child.once('exit', (code, signal) =>
        reject(new Error(`egress exited at its start (${signal ?? code}); see egress.log in the data folder`)),
      )
    })
    await Promise.race([this.#waitUntil(() => this.#isResponding()), failed])
    failed.catch(() => {}) // The lifeline reports its later end.
  }

  async #isResponding(): Promise<boolean> {
    return this.#client.state().then(
      () => true,
      () => false,
    )
  }

  async #waitUntil(condition: () => Promise<boolean>, limitMilliseconds = startLimitMilliseconds): Promise<void> {
    const limit = AbortSignal.any([AbortSignal.timeout(limitMilliseconds), this.#closing.signal])
    while (!(await condition())) await delay(retryMilliseconds, undefined, { signal: limit })
  }
}

function throwUnavailable(cause: unknown): never {
  throw new BerthError('egress_unavailable', undefined, { cause })
}
