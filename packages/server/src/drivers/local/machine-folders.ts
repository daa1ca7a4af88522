import { chmod, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { MachineId } from '@berth/contract/common/ids.ts'
import type { HostFolders } from '../../host/host-folders.ts'

/** The files of one machine. Both main folders exist from before its first process until after its last one. */
export interface MachineFolders {
  /** On disk, below the data folder. */
  readonly data: string
  /** Sockets, below the runtime folder. */
  readonly runtime: string
  /**
   * The part of the disk that the machine can write. On a host with disk images the folder is empty, and the image is
   * mounted there inside the machine.
   */
  readonly disk: string
  readonly diskImage: string
  readonly home: string
  readonly temporary: string
  readonly run: string
  /** Where its terminals are mounted before the machine starts. */
  readonly terminals: string
  /** Read-only in the machine. */
  readonly etc: string
  readonly policies: string
  /** The next version of the policies, until it is complete. */
  readonly newPolicies: string
  readonly agentConfig: string
  /** Not visible in the machine. */
  readonly log: string
  readonly sandboxInfo: string
  readonly agentSocket: string
  readonly lifeline: string
  /** Visible in the machine. egress creates its socket here. */
  readonly egress: string
  readonly egressSocket: string
}

export function machinesFolder(folders: HostFolders): string {
  return join(folders.data, 'machines')
}

/** Short, because it is part of the paths of sockets. */
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

/** Creates the folders that contain those of machines. */
export async function openMachinesFolders(folders: HostFolders): Promise<void> {
  await mkdir(machinesFolder(folders), { recursive: true })
  await chmod(machinesFolder(folders), 0o700)
  await mkdir(machinesRuntimeFolder(folders), { recursive: true })
  // egress traverses it to the folders of its own sockets, and cannot list it.
  await chmod(machinesRuntimeFolder(folders), 0o711)
}

/** Every machine that has a folder, running or not. */
export async function listMachineFolders(folders: HostFolders): Promise<ReadonlySet<MachineId>> {
  const names = await Promise.all(
    [machinesFolder(folders), machinesRuntimeFolder(folders)].map((folder) => readdir(folder)),
  )
  return new Set(names.flat() as MachineId[])
}

export async function makeFolder(path: string, mode: number): Promise<void> {
  await mkdir(path, { mode: mode & 0o777 })
  // mkdir applies the umask to the mode and ignores the sticky bit.
  await chmod(path, mode)
}
