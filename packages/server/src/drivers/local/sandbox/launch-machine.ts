import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { chown } from 'node:fs/promises'
import type { BrowserMemory } from '@berth/contract/browsers/browser.ts'
import { settleAll } from '@berth/runtime/async/settle-all.ts'
import type { ServiceUser } from '../../../host/service-user.ts'
import type { Trash } from '../../../host/trash.ts'
import type { MachineSpec } from '../../driver.ts'
import type { Cgroups, MachineLimits } from '../cgroups/cgroups.ts'
import type { LocalMachine } from '../local-machine.ts'
import { type MachineFolders, makeFolder } from '../machine-folders.ts'
import { type InheritedSocket, openInheritedSocket } from '../process/inherited-socket.ts'
import type { HostDirectories } from './host-directories.ts'
import { machineCommand } from './machine-command.ts'
import { makeDiskImage } from './machine-disk.ts'
import { type MachineUser, makeDiskFolder, writeMachineFiles } from './machine-files.ts'
import { claimUser } from './machine-user.ts'

export interface DiskLimits {
  /** The maximum that one machine may write, or less if less is free. */
  readonly bytes: number
  /** Disk space that machines must leave free. */
  readonly reservedBytes: number
  /** Whether machines get a disk image of that size. Otherwise `MachineWatch` ends machines that write more. */
  readonly isImage: boolean
}

export interface SandboxResources {
  readonly directories: HostDirectories
  readonly cgroups: Cgroups
  /** The user that creates the egress sockets, if it is not berth's own. */
  readonly egressUser: ServiceUser | undefined
  /** Groups that may use the host's GPU. */
  readonly gpuGroups: readonly number[] | undefined
  readonly disk: DiskLimits
  readonly trash: Trash
  /** The number of processes and threads that a machine may have for each GiB of its memory. */
  readonly tasksPerGibibyte: number
}

export interface LaunchOptions extends SandboxResources {
  /** Its runtime folder must exist, and nothing else of it. */
  readonly machine: LocalMachine
  readonly spec: MachineSpec
  /** The command to run in the machine. */
  readonly command: readonly string[]
  readonly signal: AbortSignal
}

/** The user of a machine with a user namespace: it is 1000 inside, and berth's own user outside. */
export const userInNamespace: MachineUser = { uid: 1000, gid: 1000, isHostUser: false }

const gibibyte = 1024 ** 3
/** In addition to the session's own memory: the agent, the display, and CDP messages of 100 MiB and more in transit. */
const transitBytes = gibibyte / 2

/** Builds a machine and starts its command. Resolves when the command is started. Its failures appear in the log. */
export async function launchMachine(options: LaunchOptions): Promise<ChildProcess> {
  const { machine, spec, directories, cgroups, signal } = options
  const { folders } = machine
  const { memoryBytes, tasks } = limitsOf(spec.memory, options.tasksPerGibibyte)
  const user = await chooseUser(folders)
  using agentSocket = await openInheritedSocket(folders.agentSocket)
  using lifeline = await openInheritedSocket(folders.lifeline)
  await makeFolder(folders.data, 0o700)
  const [groups] = await settleAll([
    cgroups.open(spec.id, { memoryBytes, tasks, isLow: spec.hasLowPriority ?? false }),
    makeEgressFolder(folders, options.egressUser),
    writeMachineFiles(folders, spec, user),
    makeDisk(folders, user, options.disk),
  ])
  signal.throwIfAborted()

  const gpuGroups = spec.gpu ? options.gpuGroups : undefined
  const { program, args } = machineCommand({
    ...options,
    folders,
    user,
    groups,
    hasDiskImage: options.disk.isImage,
    gpuGroups,
    isApp: spec.isApp ?? false,
    memoryBytes,
  })
  return spawnMachine({ program, args, folders, directories, agentSocket, lifeline })
}

/** The limits that control groups enforce. */
export function limitsOf(memory: BrowserMemory, tasksPerGibibyte = 1024): MachineLimits {
  const gibibytes = Number.parseInt(memory, 10)
  return { memoryBytes: gibibytes * gibibyte + transitBytes, tasks: gibibytes * tasksPerGibibyte }
}

async function chooseUser(folders: MachineFolders): Promise<MachineUser> {
  if (process.geteuid?.() !== 0) return userInNamespace
  return { ...(await claimUser(folders.runtime)), isHostUser: true }
}

async function makeDisk(folders: MachineFolders, user: MachineUser, limits: DiskLimits): Promise<void> {
  if (!limits.isImage) return makeDiskFolder(folders, user)
  await makeFolder(folders.disk, 0o755)
  await makeDiskImage(folders.diskImage, limits.bytes, limits.reservedBytes)
}

async function makeEgressFolder({ egress }: MachineFolders, user: ServiceUser | undefined): Promise<void> {
  await makeFolder(egress, 0o755)
  if (user) await chown(egress, user.uid, user.gid)
}

interface Spawn {
  readonly program: string
  readonly args: readonly string[]
  readonly folders: MachineFolders
  readonly directories: HostDirectories
  readonly agentSocket: InheritedSocket
  readonly lifeline: InheritedSocket
}

/** Starts the command in a new process session, independent of this process: a machine survives its server. */
function spawnMachine({ program, args, folders, directories, agentSocket, lifeline }: Spawn): ChildProcess {
  const log = openSync(folders.log, 'a', 0o600)
  const info = openSync(folders.sandboxInfo, 'w', 0o600)
  const filter = directories.seccompFilter === undefined ? undefined : openSync(directories.seccompFilter, 'r')
  try {
    return spawn(program, args, {
      detached: true,
      cwd: '/',
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
      // In the order of `descriptors`.
      stdio: ['ignore', log, log, agentSocket.descriptor, lifeline.descriptor, filter ?? 'ignore', info],
    })
  } finally {
    agentSocket.handOver()
    lifeline.handOver()
    for (const descriptor of [log, info, filter]) {
      if (descriptor !== undefined) closeSync(descriptor)
    }
  }
}
