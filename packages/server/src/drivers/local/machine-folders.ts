import { chmod, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { MachineId } from '@berth/contract/common/ids.ts'
import type { HostFolders } from '../../host/host-folders.ts'

/** Where everything of one machine is. Both folders exist from before its first process until after its last one. */
export interface MachineFolders {
  /** On disk, below the data folder. */
  readonly data: string
  /** Sockets, below the runtime folder. */
  readonly runtime: string
  /** What the machine sees of the disk as its own. On a host that can, the folder is empty and the machine has the image mounted there. */
  readonly disk: string
  readonly diskImage: string
  readonly home: string
  readonly temporary: string
  readonly run: string
  /** Where its terminals are mounted before it becomes a machine. */
  readonly terminals: string
  /** What it may only read. */
  readonly etc: string
  readonly policies: string
  /** The next of them, until they are whole. */
  readonly newPolicies: string
  readonly agentConfig: string
  /** What it never sees. */
  readonly log: string
  readonly sandboxInfo: string
  readonly agentSocket: string
  readonly lifeline: string
  /** Seen in the machine; egress makes its socket there. */
  readonly egress: string
  readonly egressSocket: string
}

export function machinesFolder(folders: HostFolders): string {
  return join(folders.data, 'machines')
}

/** Short, as all that is part of a socket's path. */
export function machinesRuntimeFolder(folders: HostFolders): string {
  return join(folders.runtime, 'm')
}

export function machineFolders(folders: HostFolders, machineId: MachineId): MachineFolders {
  const data = join(machinesFolder(folders), machineId)
  const runtime = join(machinesRuntimeFolder(folders), machineId)
  const egress = join(runtime, 'egress')
  const disk = join(data, 'disk')
  return {
    data,
    runtime,
    disk,
    diskImage: join(data, 'disk.ext4'),
    home: join(disk, 'home'),
    temporary: join(disk, 'tmp'),
    run: join(disk, 'run'),
    terminals: join(data, 'terminals'),
    etc: join(data, 'etc'),
    policies: join(data, 'policies'),
    newPolicies: join(data, 'policies.new'),
    agentConfig: join(data, 'agent.json'),
    log: join(data, 'machine.log'),
    sandboxInfo: join(data, 'sandbox.json'),
    agentSocket: join(runtime, 'agent.sock'),
    lifeline: join(runtime, 'life.sock'),
    egress,
    egressSocket: join(egress, 'egress.sock'),
  }
}

/** Makes the folders that hold those of machines. */
export async function openMachinesFolders(folders: HostFolders): Promise<void> {
  await mkdir(machinesFolder(folders), { recursive: true })
  await chmod(machinesFolder(folders), 0o700)
  await mkdir(machinesRuntimeFolder(folders), { recursive: true })
  // Egress passes through it to the folders of its own sockets, and sees nothing of what is above.
  await chmod(machinesRuntimeFolder(folders), 0o711)
}

/** Every machine that has a folder, living or not. */
export async function listMachineFolders(folders: HostFolders): Promise<ReadonlySet<MachineId>> {
  const names = await Promise.all(
    [machinesFolder(folders), machinesRuntimeFolder(folders)].map((folder) => readdir(folder)),
  )
  return new Set(names.flat() as MachineId[])
}

export async function makeFolder(path: string, mode: number): Promise<void> {
  await mkdir(path, { mode: mode & 0o777 })
  // The mode of mkdir is cut by the umask and has no sticky bit.
  await chmod(path, mode)
}
