import { readFile } from 'node:fs/promises'
import type { Duplex } from 'node:stream'
import type { MachineId } from '@berth/contract/common/ids.ts'
import { connectUnixSocket } from '../../host/connect-unix-socket.ts'
import type { HostFolders } from '../../host/host-folders.ts'
import type { EgressSocket, Machine } from '../driver.ts'
import type { Cgroups } from './cgroups/cgroups.ts'
import { type MachineFolders, machineFolders } from './machine-folders.ts'
import { type HostProcess, isAlive, readProcess, sendSignal, waitForEnd } from './process/host-process.ts'
import { type Lifeline, watchLifeline } from './process/lifeline.ts'
import { belongsTo } from './process/machine-processes.ts'

export interface LocalMachineOptions {
  readonly hostFolders: HostFolders
  readonly cgroups: Cgroups
  readonly id: MachineId
  /** Whether egress runs under a user of its own. */
  readonly hasEgressUser: boolean
  /** Those that are known already, of a machine that an earlier server started. */
  readonly processes?: readonly HostProcess[]
}

/** One machine of this host, started by this server or by an earlier one. */
export class LocalMachine implements Machine {
  readonly id: MachineId
  readonly egressSocket: EgressSocket
  readonly folders: MachineFolders
  readonly ended: Promise<void>
  readonly #hostFolders: HostFolders
  readonly #cgroups: Cgroups
  readonly #markEnded: () => void
  #processes: readonly HostProcess[]
  #firstProcess: HostProcess | undefined
  #lifeline: Lifeline | undefined

  constructor({ hostFolders, cgroups, id, hasEgressUser, processes = [] }: LocalMachineOptions) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.id = id
    this.folders = machineFolders(hostFolders, id)
    this.egressSocket = { path: this.folders.egressSocket, mode: hasEgressUser ? 0o666 : 0o600 }
    this.ended = promise
    this.#hostFolders = hostFolders
    this.#cgroups = cgroups
    this.#markEnded = resolve
    this.#processes = processes
  }

  connect(): Promise<Duplex> {
    return connectUnixSocket(this.folders.agentSocket)
  }

  /** The process inside whose end ends all others of the machine. */
  async findFirstProcess(): Promise<HostProcess | undefined> {
    if (this.#firstProcess) return this.#firstProcess
    const text = await readFile(this.folders.sandboxInfo, 'utf8').catch(() => '')
    const pid = Number(/"child-pid":\s*(\d+)/.exec(text)?.[1])
    return pid > 0 && (await belongsTo(pid, this.id, this.#hostFolders)) ? readProcess(pid) : undefined
  }

  /** Takes note of the command that builds the machine, and settles `ended` when the machine is gone. */
  async watch(launcherPid?: number): Promise<void> {
    const launcher = launcherPid === undefined ? undefined : await readProcess(launcherPid)
    if (launcher) this.#processes = [...this.#processes, launcher]
    this.#lifeline = await watchLifeline(this.folders.lifeline)
    // What holds the lifeline is gone: nothing of the machine can do anything any more, but it may not be cleared yet.
    this.#lifeline.cut.then(() => this.kill()).then(this.#markEnded, this.#markEnded)
  }

  /** Ends the watch and leaves the machine as it is. */
  release(): void {
    this.#lifeline?.close()
  }

  /** Keeps the number of the first process while nothing in the machine has had time to change its looks. */
  async noteFirstProcess(): Promise<void> {
    this.#firstProcess = await this.findFirstProcess()
  }

  /** Ends every process of the machine and waits until they are gone. */
  async kill(): Promise<void> {
    for (;;) {
      const living = await this.#findLiving()
      if (living.length === 0) return this.#markEnded()
      for (const { pid } of living) {
        // The group too: while it builds the machine the command has helpers.
        sendSignal(-pid, 'SIGKILL')
        sendSignal(pid, 'SIGKILL')
      }
      // The frozen die only when they are thawed, and by then without another instruction of their own.
      await this.#cgroups.thaw(this.id)
      await waitForEnd(living)
    }
  }

  /** Asks again each time: bubblewrap may just have made the first process. */
  async #findLiving(): Promise<readonly HostProcess[]> {
    const first = await this.findFirstProcess()
    const candidates = first ? [...this.#processes, first] : this.#processes
    const states = await Promise.all(candidates.map(isAlive))
    return candidates.filter((_candidate, index) => states[index])
  }
}
