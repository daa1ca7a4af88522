import { chown } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { getAgentState } from '@berth/contract/agent/agent-endpoints.ts'
import type { SessionId } from '@berth/contract/common/ids.ts'
import { SingleFlight } from '@berth/runtime/async/single-flight.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { callAgent } from '../../agent-link/agent-client.ts'
import type { HostFolders } from '../../host/host-folders.ts'
import type { BundledPrograms } from '../../host/program-bundle.ts'
import type { ServiceUser } from '../../host/service-user.ts'
import type { Trash } from '../../host/trash.ts'
import type { ChromePolicies, Driver, DriverCapabilities, Machine, MachineSpec } from '../driver.ts'
import { agentPrograms } from './agent-programs.ts'
import { findHierarchies } from './cgroup-hierarchies.ts'
import { Cgroups } from './cgroups.ts'
import { findGpuGroups } from './gpu.ts'
import type { HostProcess } from './host-process.ts'
import { type HostReserve, HostRoom, lackOfRoomIn } from './host-room.ts'
import { type DiskLimits, launchMachine, type MachineMakings } from './launch-machine.ts'
import { LocalMachine } from './local-machine.ts'
import { findLocalProblem, trialId } from './local-problem.ts'
import { findDiskImageProblem } from './machine-disk.ts'
import { changePolicies, inMachine } from './machine-files.ts'
import { listMachineFolders, makeFolder, openMachinesFolders } from './machine-folders.ts'
import { prepareGround } from './machine-ground.ts'
import { readLastLines } from './machine-log.ts'
import { findMachineProcesses } from './machine-processes.ts'
import { releaseOrphanedUsers } from './machine-user.ts'
import { MachineWatch } from './machine-watch.ts'
import { continueTree, stopTree } from './process-tree.ts'
import { removeMachine } from './remove-machine.ts'
import { settleAll } from './settle-all.ts'

/** A machine's way out: a socket in its own folder, on which egress listens. */
export interface MachineRoutes {
  openRoute(sessionId: SessionId, socketPath: string, socketMode: number): Promise<void>
  /** Also of a machine that has none. */
  closeRoute(sessionId: SessionId): Promise<void>
}

export interface LocalDriverOptions {
  readonly folders: HostFolders
  readonly routes: MachineRoutes
  readonly trash: Trash
  /** Where berth is root. */
  readonly egressUser: ServiceUser | undefined
  /** Absent: those of berth's own agent. */
  readonly programs?: BundledPrograms
  /** What machines leave to the host. Absent: nothing. */
  readonly reserve?: HostReserve
  /** How many processes and threads a machine may have for each GiB of its memory. */
  readonly tasksPerGibibyte?: number
  /** What a machine may write to its disk. Absent: 8 GiB. */
  readonly diskBytes?: number
  /** Whether machines get disks in files. Absent: where the host can. */
  readonly hasDiskImages?: boolean
  readonly logger?: Logger
}

interface StartUnderWay {
  readonly cancel: AbortController
  /** Never rejects. */
  readonly settled: Promise<unknown>
}

/** A browser with a hundred tabs has some 2,000; a machine that makes ever more of them stops at this. */
const defaultTasksPerGibibyte = 1024
/** For so long a trial counts that went well. */
const proofMilliseconds = 60_000
const watchMilliseconds = 2_000
/** For so long a list of machines waits for their routes: one that cannot be opened holds none of the others up. */
const routesMilliseconds = 2_000
const defaultDiskBytes = 8 * 1024 ** 3
const agentCommand = [inMachine.node, inMachine.agent, inMachine.agentConfig]

/** Machines on this host: bubblewrap sandboxes that outlive the server. */
export class LocalDriver implements Driver {
  readonly name = 'local'
  readonly capabilities: DriverCapabilities
  readonly #folders: HostFolders
  readonly #routes: MachineRoutes
  readonly #room: HostRoom
  readonly #trash: Trash
  readonly #logger: Logger | undefined
  readonly #makings: MachineMakings
  /** Those that this server has started or found. */
  readonly #machines = new Map<SessionId, LocalMachine>()
  readonly #starts = new Map<SessionId, StartUnderWay>()
  readonly #stops = new SingleFlight<SessionId, void>()
  readonly #watch: MachineWatch
  #trial: Promise<string | undefined> | undefined
  #provenUntil = 0

  private constructor({ folders, routes, trash, reserve, logger }: LocalDriverOptions, makings: MachineMakings) {
    const { cgroups, gpuGroups, disk } = makings
    this.capabilities = { canFreeze: true, canLimit: cgroups.canLimit, hasGpu: gpuGroups !== undefined }
    this.#folders = folders
    this.#routes = routes
    this.#trash = trash
    this.#logger = logger
    this.#makings = makings
    this.#room = new HostRoom({
      dataFolder: folders.data,
      reserve: reserve ?? { memoryBytes: 0, diskBytes: 0 },
      memoryOf: (sessionId) => cgroups.readMemory(sessionId),
    })
    const watched = { dataFolder: folders.data, machines: this.#machines, cgroups, disk }
    this.#watch = new MachineWatch({ ...watched, end: (...found) => this.#endGreedy(...found) }, watchMilliseconds)
  }

  /** Prepares what machines share. Machines that exist already are left alone. */
  static async open(options: LocalDriverOptions): Promise<LocalDriver> {
    const { folders } = options
    await openMachinesFolders(folders)
    const [ground, hierarchies, gpuGroups, disk] = await Promise.all([
      prepareGround(folders, options.programs ?? agentPrograms),
      findHierarchies(),
      findGpuGroups(),
      findDiskLimits(options),
      releaseOrphanedUsers(),
    ])
    const cgroups = new Cgroups(hierarchies, `berth-${basename(folders.runtime)}`)
    const tasksPerGibibyte = options.tasksPerGibibyte ?? defaultTasksPerGibibyte
    const { trash, egressUser } = options
    return new LocalDriver(options, { ground, cgroups, gpuGroups, disk, trash, tasksPerGibibyte, egressUser })
  }

  /** Lets go of all machines and leaves them running. */
  close(): void {
    this.#watch.close()
    for (const machine of this.#machines.values()) machine.release()
  }

  async problem(): Promise<string | undefined> {
    if (performance.now() < this.#provenUntil) return undefined
    this.#trial ??= this.#tryOut().finally(() => {
      this.#trial = undefined
    })
    return this.#trial
  }

  async #tryOut(): Promise<string | undefined> {
    const problem = await findLocalProblem(this.#folders, this.#makings)
    if (problem === undefined) this.#provenUntil = performance.now() + proofMilliseconds
    return problem
  }

  async start(spec: MachineSpec, signal: AbortSignal): Promise<Machine> {
    signal.throwIfAborted()
    const { sessionId } = spec
    if (this.#starts.has(sessionId)) throw new Error(`the machine of session ${sessionId} is starting already`)
    const cancel = new AbortController()
    const start = this.#startOrRemove(spec, AbortSignal.any([signal, cancel.signal]))
    // In the same turn, so that a stop that comes at once finds it.
    this.#starts.set(sessionId, { cancel, settled: start.catch(() => {}) })
    return start.finally(() => this.#starts.delete(sessionId))
  }

  async #startOrRemove(spec: MachineSpec, signal: AbortSignal): Promise<Machine> {
    await this.#room.take(spec.sessionId)
    const machine = this.#newMachine(spec.sessionId)
    // Whoever makes this folder owns the session's one machine: another start fails here and leaves the first alone.
    await makeFolder(machine.folders.runtime, 0o711)
    this.#machines.set(spec.sessionId, machine)
    try {
      await this.#launch(machine, spec, signal)
      return machine
    } catch (error) {
      const lastLines = await readLastLines(machine.folders.log)
      await this.#remove(machine)
      signal.throwIfAborted()
      const lack = lackOfRoomIn(error)
      if (lack) throw lack
      throw new Error(`the machine did not start: ${[(error as Error).message, lastLines].join('\n').trim()}`, {
        cause: error,
      })
    }
  }

  async #launch(machine: LocalMachine, spec: MachineSpec, signal: AbortSignal): Promise<void> {
    const failure = new AbortController()
    const either = AbortSignal.any([signal, failure.signal])
    const child = await launchMachine({ ...this.#makings, machine, spec, command: agentCommand, signal })
    child.once('error', (error) => failure.abort(error))
    child.unref()
    await machine.watch(child.pid)

    const route = this.#openRoute(machine)
    route.catch((error: Error) => failure.abort(error))
    await settleAll([route, firstAnswer(machine, either)]).catch((error: unknown) => {
      throw failure.signal.aborted ? failure.signal.reason : error
    })
    await machine.noteFirstProcess()
  }

  async #openRoute({ sessionId, folders }: LocalMachine): Promise<void> {
    const { egressUser } = this.#makings
    // Again for a machine of an earlier version, whose egress had another user.
    if (egressUser) await chown(folders.egress, egressUser.uid, egressUser.gid)
    await this.#routes.openRoute(sessionId, folders.egressSocket, egressUser ? 0o666 : 0o600)
  }

  stop(sessionId: SessionId): Promise<void> {
    return this.#stops.run(sessionId, () => this.#stop(sessionId))
  }

  async #stop(sessionId: SessionId): Promise<void> {
    const start = this.#starts.get(sessionId)
    start?.cancel.abort(new Error('the machine was stopped while it was starting'))
    await start?.settled
    const machine = await this.#find(sessionId)
    if (machine) await this.#remove(machine)
  }

  async #remove(machine: LocalMachine): Promise<void> {
    const { sessionId } = machine
    await removeMachine({
      machine,
      cgroups: this.#makings.cgroups,
      trash: this.#trash,
      closeRoute: () => this.#routes.closeRoute(sessionId),
    })
    machine.release()
    this.#machines.delete(sessionId)
    this.#room.free(sessionId)
  }

  async lastLines(sessionId: SessionId): Promise<string> {
    return readLastLines(this.#newMachine(sessionId).folders.log)
  }

  countMemoryKills(sessionId: SessionId): Promise<number> {
    return this.#makings.cgroups.countMemoryKills(sessionId)
  }

  async changePolicies(
    sessionId: SessionId,
    change: (policies: ChromePolicies) => ChromePolicies,
  ): Promise<ChromePolicies> {
    return changePolicies(this.#newMachine(sessionId).folders, change)
  }

  async freeze(sessionId: SessionId): Promise<void> {
    const { cgroups } = this.#makings
    if (cgroups.canFreeze) return cgroups.freeze(sessionId)
    const first = await (await this.#find(sessionId))?.findFirstProcess()
    if (first) await stopTree(first)
  }

  async thaw(sessionId: SessionId): Promise<void> {
    const { cgroups } = this.#makings
    if (cgroups.canFreeze) return cgroups.thaw(sessionId)
    const first = await (await this.#find(sessionId))?.findFirstProcess()
    if (first) await continueTree(first)
  }

  async list(): Promise<readonly LocalMachine[]> {
    const processes = await findMachineProcesses(this.#folders)
    // After the processes: a machine whose folders are seen before them could end in between.
    const sessionIds = new Set([...processes.keys(), ...(await listMachineFolders(this.#folders))])
    if (this.#trial) sessionIds.delete(trialId)
    const machines = await Promise.all([...sessionIds].map((id) => this.#adopt(id, processes.get(id))))
    // Egress goes on serving them, but a later egress would not know of routes that an earlier server has opened. A
    // machine that is half made or half gone has no place for one, and needs none.
    const routes = machines
      .filter(({ sessionId }) => processes.has(sessionId))
      .map((machine) => this.#openRoute(machine).catch(() => {}))
    await Promise.race([Promise.all(routes), delay(routesMilliseconds, undefined, { ref: false })])
    return machines
  }

  /** A machine that this server has started or seen, or else one that exists. */
  async #find(sessionId: SessionId): Promise<LocalMachine | undefined> {
    const known = this.#machines.get(sessionId)
    if (known) return known
    const exists = (await listMachineFolders(this.#folders)).has(sessionId)
    return exists ? this.#adopt(sessionId, (await findMachineProcesses(this.#folders)).get(sessionId)) : undefined
  }

  async #adopt(sessionId: SessionId, processes: readonly HostProcess[] = []): Promise<LocalMachine> {
    const known = this.#machines.get(sessionId)
    if (known) return known
    const machine = this.#newMachine(sessionId, processes)
    const [process] = processes
    if (process) await this.#makings.cgroups.locate(sessionId, process.pid)
    this.#machines.set(sessionId, machine)
    await machine.watch()
    return machine
  }

  #newMachine(sessionId: SessionId, processes: readonly HostProcess[] = []): LocalMachine {
    return new LocalMachine({ hostFolders: this.#folders, cgroups: this.#makings.cgroups, sessionId, processes })
  }

  /** Its end is noticed, and the rest removed, as of a machine that ends by itself. */
  async #endGreedy(machine: LocalMachine, reason: string): Promise<void> {
    this.#logger?.warn({ sessionId: machine.sessionId }, `a machine takes too much and is ended: ${reason}`)
    await machine.kill()
  }
}

async function findDiskLimits(options: LocalDriverOptions): Promise<DiskLimits> {
  const { trash, reserve, diskBytes = defaultDiskBytes, hasDiskImages = true } = options
  const isImage = hasDiskImages && (await findDiskImageProblem(trash.folder)) === undefined
  return { bytes: diskBytes, reservedBytes: reserve?.diskBytes ?? 0, isImage }
}

/** The connection waits until the agent takes it, and is cut when the machine ends before. */
async function firstAnswer(machine: Machine, signal: AbortSignal): Promise<void> {
  const { method, path } = getAgentState
  const answer = callAgent(machine, { method, path, signal })
  const response = await answer.catch((cause: unknown) => {
    throw new Error('its agent did not answer', { cause })
  })
  // That there is one is all that counts; a body without end is not read.
  response.destroy()
}
