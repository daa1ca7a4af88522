import { chmod, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { SessionId } from '@berth/contract/common/ids.ts'
import type { HostFolders } from '../../host/host-folders.ts'

/** Where everything of one machine is. Both folders exist from before its first process until after its last one. */
export interface MachineFolders {
  /** On disk, below the data folder. */
  readonly data: string
  /** Sockets, below the runtime folder. */
  readonly runtime: string
  /** What the machine sees of the disk as its own. */
  readonly home: string
  readonly temporary: string
  readonly run: string
  /** What it may only read. */
  readonly etc: string
  readonly policies: string
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

export function machineFolders(folders: HostFolders, sessionId: SessionId): MachineFolders {
  const data = join(machinesFolder(folders), sessionId)
  const runtime = join(machinesRuntimeFolder(folders), sessionId)
  const egress = join(runtime, 'egress')
  return {
    data,
    runtime,
    home: join(data, 'home'),
    temporary: join(data, 'tmp'),
    run: join(data, 'run'),
    etc: join(data, 'etc'),
    policies: join(data, 'policies'),
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

/** Every session that has a folder, living or not. */
export async function listMachineFolders(folders: HostFolders): Promise<ReadonlySet<SessionId>> {
  const names = await Promise.all(
    [machinesFolder(folders), machinesRuntimeFolder(folders)].map((folder) => readdir(folder)),
  )
  return new Set(names.flat() as SessionId[])
}

/** Removes a tree whose owner may have taken away the permission to do so. No process may be at work in it. */
export async function removeTree(path: string): Promise<void> {
  const options = { recursive: true, force: true, maxRetries: 2 }
  try {
    await rm(path, options)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error
    await openFolders(path)
    await rm(path, options)
  }
}

async function openFolders(path: string): Promise<void> {
  try {
    await chmod(path, 0o700)
    for (const entry of await readdir(path, { withFileTypes: true })) {
      // Links are no directories here, so that none leads out of the tree.
      if (entry.isDirectory()) await openFolders(join(path, entry.name))
    }
  } catch (error) {
    // The removal that failed at one place has gone on at others.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

export async function makeFolder(path: string, mode: number): Promise<void> {
  await mkdir(path, { mode: mode & 0o777 })
  // The mode of mkdir is cut by the umask and has no sticky bit.
  await chmod(path, mode)
}
