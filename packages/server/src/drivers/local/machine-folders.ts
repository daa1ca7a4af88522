import { execFile } from 'node:child_process'
import { chmod, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { SessionId } from '@berth/contract/common/ids.ts'
import type { HostFolders } from '../../host/host-folders.ts'

const run = promisify(execFile)

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

/** Every session that has a folder, living or not. */
export async function listMachineFolders(folders: HostFolders): Promise<ReadonlySet<SessionId>> {
  const names = await Promise.all(
    [machinesFolder(folders), machinesRuntimeFolder(folders)].map((folder) => readdir(folder)),
  )
  return new Set(names.flat() as SessionId[])
}

/**
 * Removes a tree that somebody else has filled. It may be closed to its owner, deeper than a path can be told and full
 * of names that are no text: what Node leaves of it for one of these reasons the system's own programs take away, which
 * go from folder to folder and follow no link. No process may be at work in it.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true })
  } catch {
    await run('/bin/chmod', ['-R', '--silent', 'u+rwx', '--', path]).catch(() => {}) // The removal tells what is wrong.
    await run('/bin/rm', ['-rf', '--', path])
  }
}

export async function makeFolder(path: string, mode: number): Promise<void> {
  await mkdir(path, { mode: mode & 0o777 })
  // The mode of mkdir is cut by the umask and has no sticky bit.
  await chmod(path, mode)
}
