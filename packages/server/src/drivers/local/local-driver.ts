import { stat } from 'node:fs/promises'
import { basename } from 'node:path'
import { getAgentState } from '@berth/contract/agent/agent-endpoints.ts'
import type { MachineId } from '@berth/contract/common/ids.ts'
import { Queue } from '@berth/runtime/async/queue.ts'
import { SingleFlight } from '@berth/runtime/async/single-flight.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { callAgent } from '../../agent-link/agent-client.ts'
import type { BundledPrograms } from '../../host/bundles/program-bundle.ts'
import type { HostFolders } from '../../host/host-folders.ts'
import type { ServiceUser } from '../../host/service-user.ts'
import type { Trash } from '../../host/trash.ts'
import type { ChromePolicies, Driver, DriverCapabilities, FreeRoom, Machine, MachineSpec } from '../driver.ts'
import { MachineStarts } from '../machine-starts.ts'
import { findHierarchies } from './cgroups/cgroup-hierarchies.ts'
import { Cgroups } from './cgroups/cgroups.ts'
import { type HostReserve, HostRoom, lackOfRoomIn } from './host-room.ts'
import { LocalMachine } from './local-machine.ts'
import { findLocalProblem, trialId } from './local-problem.ts'
import { listMachineFolders, makeFolder, openMachinesFolders } from './machine-folders.ts'
import { readLastLines } from './machine-log.ts'
import { MachineWatch } from './machine-watch.ts'
import { type HostProcess, readProcess } from './process/host-process.ts'
import { findMachineProcesses } from './process/machine-processes.ts'
import { continueTree, stopTree } from './process/process-tree.ts'
import { removeMachine } from './remove-machine.ts'
import { agentPrograms } from './sandbox/agent-programs.ts'
import { findGpuGroups } from './sandbox/gpu.ts'
import { openHostDirectories } from './sandbox/host-directories.ts'
import { type DiskLimits, launchMachine, type SandboxResources } from './sandbox/launch-machine.ts'
import { findDiskImageProblem } from './sandbox/machine-disk.ts'
import { changePolicies, inMachine } from './sandbox/machine-files.ts'
import { releaseOrphanedUsers } from './sandbox/machine-user.ts'

export interface LocalDriverOptions {
  readonly folders: HostFolders
  readonly trash: Trash
  /** Set when berth runs as root. */
  readonly egressUser: ServiceUser | undefined
  /** Defaults to those of berth's own agent. */
  readonly programs?: BundledPrograms
  /** The resources to leave to the host. Defaults to none. */
  readonly reserve?: HostReserve
  /** The number of processes and threads that a machine may have for each GiB of its memory. */
  readonly tasksPerGibibyte?: number
  /** The number of bytes that a machine may write to its disk. Defaults to 8 GiB. */
  readonly diskBytes?: number
  /** Whether machines get disk image files. Defaults to what the host supports. */
  readonly hasDiskImages?: boolean
  readonly logger?: Logger
}

/** A browser with a hundred tabs has about 2,000. The limit stops a machine that creates more and more. */
const defaultTasksPerGibibyte = 1024
const trialResultTtlMilliseconds = 60_000
const watchMilliseconds = 2_000
const defaultDiskBytes = 8 * 1024 ** 3
const agentCommand = [inMachine.node, inMachine.agent, inMachine.agentConfig]

/** Machines on this host: bubblewrap sandboxes that outlive the server. */
export class LocalDriver implements Driver {
  readonly name = 'local'
  readonly capabilities: DriverCapabilities
  readonly #folders: HostFolders
  readonly #room: HostRoom
  readonly #trash: Trash
  readonly #logger: Logger | undefined
  readonly #resources: SandboxResources
  /** The machines that this server has started or found. */
  readonly #machines = new Map<MachineId, LocalMachine>()
  readonly #starts = new MachineStarts()
  readonly #stops = new SingleFlight<MachineId, void>()
  readonly #scans = new SingleFlight<'all', ReadonlyMap<MachineId, readonly HostProcess[]>>()
  readonly #reclaims = new Queue()
  readonly #watch: MachineWatch
  #trial: Promise<string | undefined> | undefined
  #trialResultExpiresAt = 0

  private constructor({ folders, trash, reserve, logger }: LocalDriverOptions, resources: SandboxResources) {
    const { cgroups, gpuGroups, disk } = resources
    this.capabilities = {
      canFreeze: true,
      canLimit: cgroups.canLimit,
      hasGpu: gpuGroups !== undefined,
      areMachinesShared: false,
    }
    this.#folders = folders
    this.#trash = trash
    this.#logger = logger
    this.#resources = resources
    this.#room = new HostRoom({
      dataFolder: folders.data,
      reserve: reserve ?? { memoryBytes: 0, diskBytes: 0 },
      memoryOf: (machineId) => cgroups.readMemory(machineId),
    })
    const watched = { dataFolder: folders.data, machines: this.#machines, cgroups, disk }
    this.#watch = new MachineWatch({ ...watched, end: (...found) => this.#endExcessive(...found) }, watchMilliseconds)
  }

  /** Prepares what machines share. Does not change existing machines. */
  static async open(options: LocalDriverOptions): Promise<LocalDriver> {
    const { folders } = options
    await openMachinesFolders(folders)
    const [directories, hierarchies, gpuGroups, disk] = await Promise.all([
      openHostDirectories(folders, options.programs ?? agentPrograms),
      findHierarchies(),
      findGpuGroups(),
      findDiskLimits(options),
      releaseOrphanedUsers(),
    ])
    const cgroups = new Cgroups(hierarchies, `berth-${basename(folders.runtime)}`)
    const tasksPerGibibyte = options.tasksPerGibibyte ?? defaultTasksPerGibibyte
    const { trash, egressUser } = options
    return new LocalDriver(options, { directories, cgroups, gpuGroups, disk, trash, tasksPerGibibyte, egressUser })
  }

  /** Detaches from all machines. They keep running. */
  close(): void {
    this.#watch.close()
    for (const machine of this.#machines.values()) machine.release()
  }

  async problem(): Promise<string | undefined> {
    if (performance.now() < this.#trialResultExpiresAt) return undefined
    this.#trial ??= this.#tryOut().finally(() => {
      this.#trial = undefined
    })
    return this.#trial
  }

  freeRoom(): Promise<FreeRoom | undefined> {
    return this.#room.look()
  }

  async #tryOut(): Promise<string | undefined> {
    const problem = await findLocalProblem(this.#folders, this.#resources)
    if (problem === undefined) this.#trialResultExpiresAt = performance.now() + trialResultTtlMilliseconds
    return problem
  }

  start(spec: MachineSpec, signal: AbortSignal): Promise<Machine> {
    return this.#starts.run(spec.id, signal, (either) => this.#startOrRemove(spec, either))
  }

  async #startOrRemove(spec: MachineSpec, signal: AbortSignal): Promise<Machine> {
    await this.#room.take(spec.id)
    const machine = this.#newMachine(spec.id)
    // The creator of this folder owns the machine: another start with the same id fails here and leaves the first one
    // alone.
    await makeFolder(machine.folders.runtime, 0o711)
    this.#machines.set(spec.id, machine)
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
    const child = await launchMachine({ ...this.#resources, machine, spec, command: agentCommand, signal })
    child.once('error', (error) => failure.abort(error))
    child.unref()
    await machine.watch(child.pid)
    await firstAnswer(machine, either).catch((error: unknown) => {
      throw failure.signal.aborted ? failure.signal.reason : error
    })
    await machine.noteFirstProcess()
  }

  stop(machineId: MachineId): Promise<void> {
    return this.#stops.run(machineId, () => this.#stop(machineId))
  }

  async #stop(machineId: MachineId): Promise<void> {
    await this.#starts.cancel(machineId)
    const machine = await this.adopt(machineId)
    if (machine) await this.#remove(machine)
  }

  async #remove(machine: LocalMachine): Promise<void> {
    await removeMachine({ machine, cgroups: this.#resources.cgroups, trash: this.#trash })
    machine.release()
    this.#machines.delete(machine.id)
    this.#room.free(machine.id)
  }

  async lastLines(machineId: MachineId): Promise<string> {
    return readLastLines(this.#newMachine(machineId).folders.log)
  }

  countMemoryKills(machineId: MachineId): Promise<number> {
    return this.#resources.cgroups.countMemoryKills(machineId)
  }

  async changePolicies(
    machineId: MachineId,
    change: (policies: ChromePolicies) => ChromePolicies,
  ): Promise<ChromePolicies> {
    return changePolicies(this.#newMachine(machineId).folders, change)
  }

  async lowerPriority(machineId: MachineId): Promise<void> {
    this.#resources.cgroups.makeIdle(machineId)
  }

  async raisePriority(machineId: MachineId): Promise<void> {
    this.#resources.cgroups.raiseShare(machineId)
  }

  async programVersion(): Promise<string> {
    const { mtimeMs, size, ino } = await stat(inMachine.chromium)
    return [mtimeMs, size, ino].join(' ')
  }

  async freeze(machineId: MachineId): Promise<void> {
    const { cgroups } = this.#resources
    if (cgroups.canFreeze) return cgroups.freeze(machineId)
    const first = await (await this.adopt(machineId))?.findFirstProcess()
    if (first) await stopTree(first)
  }

  async thaw(machineId: MachineId): Promise<void> {
    const { cgroups } = this.#resources
    if (cgroups.canFreeze) return cgroups.thaw(machineId)
    const first = await (await this.adopt(machineId))?.findFirstProcess()
    if (first) await continueTree(first)
  }

  /** One machine at a time, because it uses the disk or a whole processor. */
  reclaimMemory(machineId: MachineId): Promise<number> {
    return this.#reclaims.run(() => this.#resources.cgroups.reclaim(machineId))
  }

  async isFrozen(machineId: MachineId): Promise<boolean> {
    const { cgroups } = this.#resources
    // Finds the groups of a machine that an earlier server started.
    const first = await (await this.adopt(machineId))?.findFirstProcess()
    if (cgroups.canFreeze) return cgroups.isFrozen(machineId)
    return first !== undefined && ((await readProcess(first.pid))?.isStopped ?? false)
  }

  async list(): Promise<readonly MachineId[]> {
    const processes = await findMachineProcesses(this.#folders)
    // Listed after the processes: otherwise a machine could end between the two lists.
    const machineIds = new Set([...processes.keys(), ...(await listMachineFolders(this.#folders))])
    // Excludes the driver's own running trial. Remains of other trials are removed like any machine.
    if (this.#trial) machineIds.delete(trialId)
    return [...machineIds]
  }

  async adopt(machineId: MachineId): Promise<LocalMachine | undefined> {
    const known = this.#machines.get(machineId)
    if (known) return known
    // One scan for all concurrent requests, because it reads the command line of every process of the host.
    const scan = await this.#scans.run('all', () => findMachineProcesses(this.#folders))
    const processes = scan.get(machineId) ?? []
    const [process] = processes
    if (!process && !(await listMachineFolders(this.#folders)).has(machineId)) return undefined
    if (process) await this.#resources.cgroups.locate(machineId, process.pid)
    const machine = this.#machines.get(machineId) ?? this.#newMachine(machineId, processes)
    if (this.#machines.has(machineId)) return machine
    this.#machines.set(machineId, machine)
    await machine.watch()
    return machine
  }

  #newMachine(id: MachineId, processes: readonly HostProcess[] = []): LocalMachine {
    const { cgroups, egressUser } = this.#resources
    return new LocalMachine({
      hostFolders: this.#folders,
      cgroups,
      id,
      hasEgressUser: egressUser !== undefined,
      processes,
    })
  }

  /** The rest is removed as for a machine that ends by itself. */
  async #endExcessive(machine: LocalMachine, reason: string): Promise<void> {
    this.#logger?.warn({ machineId: machine.id }, `a machine exceeds its share and is stopped: ${reason}`)
    await machine.kill()
  }
}

async function findDiskLimits(options: LocalDriverOptions): Promise<DiskLimits> {
  const { trash, reserve, diskBytes = defaultDiskBytes, hasDiskImages = true } = options
  const isImage = hasDiskImages && (await findDiskImageProblem(trash.folder)) === undefined
  return { bytes: diskBytes, reservedBytes: reserve?.diskBytes ?? 0, isImage }
}

/** The connection waits until the agent accepts it, and is closed if the machine ends before. */
async function firstAnswer(machine: Machine, signal: AbortSignal): Promise<void> {
  const { method, path } = getAgentState
  const answer = callAgent(machine, { method, path, signal })
  const response = await answer.catch((cause: unknown) => {
    throw new Error('its agent did not respond', { cause })
  })
  // Any response suffices. An endless body must not be read.
  response.destroy()
}
