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
  /** Whether egress runs as a separate user. */
  readonly hasEgressUser: boolean
  /** The known processes of a machine that an earlier server started. */
  readonly processes?: readonly HostProcess[]
}

/** A machine of this host, started by this server or an earlier one. */
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

  /** The process inside the machine whose end ends all others. */
  async findFirstProcess(): Promise<HostProcess | undefined> {
    if (this.#firstProcess) return this.#firstProcess
    const text = await readFile(this.folders.sandboxInfo, 'utf8').catch(() => '')
    const pid = Number(/"child-pid":\s*(\d+)/.exec(text)?.[1])
    return pid > 0 && (await belongsTo(pid, this.id, this.#hostFolders)) ? readProcess(pid) : undefined
  }

  /** Registers the command that builds the machine, and settles `ended` when the machine is gone. */
  async watch(launcherPid?: number): Promise<void> {
    const launcher = launcherPid === undefined ? undefined : await readProcess(launcherPid)
    if (launcher) this.#processes = [...this.#processes, launcher]
    this.#lifeline = await watchLifeline(this.folders.lifeline)
    // The holder of the lifeline is gone: nothing of the machine can run any more, but the kernel may not have removed
    // it yet.
    this.#lifeline.cut.then(() => this.kill()).then(this.#markEnded, this.#markEnded)
  }

  /** Stops watching. The machine keeps running. */
  release(): void {
    this.#lifeline?.close()
  }

  /** Stores the id of the first process before anything in the machine can change its command line. */
  async noteFirstProcess(): Promise<void> {
    this.#firstProcess = await this.findFirstProcess()
  }

  /** Kills every process of the machine and waits until they are gone. */
  async kill(): Promise<void> {
    for (;;) {
      const living = await this.#findLiving()
      if (living.length === 0) return this.#markEnded()
      for (const { pid } of living) {
        // Includes the process group: the command has helpers while it builds the machine.
        sendSignal(-pid, 'SIGKILL')
        sendSignal(pid, 'SIGKILL')
      }
      // Frozen processes die when they are thawed, without executing another instruction.
      await this.#cgroups.thaw(this.id)
      await waitForEnd(living)
    }
  }

  /** Searches each time: bubblewrap may have just created the first process. */
  async #findLiving(): Promise<readonly HostProcess[]> {
    const first = await this.findFirstProcess()
    const candidates = first ? [...this.#processes, first] : this.#processes
    const states = await Promise.all(candidates.map(isAlive))
    return candidates.filter((_candidate, index) => states[index])
  }
}
