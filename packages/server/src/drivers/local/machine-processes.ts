import { readdir, readFile } from 'node:fs/promises'
import type { SessionId } from '@berth/contract/common/ids.ts'
import type { HostFolders } from '../../host/host-folders.ts'
import { type HostProcess, readProcess } from './host-process.ts'
import { machineFolders, machinesRuntimeFolder } from './machine-folders.ts'

/*
 * The processes of a machine that the host answers for: the command while it builds the machine, then bubblewrap twice,
 * outside to wait and inside as the machine's first process, whose end ends all others. Their command lines name the
 * machine's egress folder, so the kernel itself says which machines there are.
 */

/** Those of all machines of one runtime folder, whoever started them. */
export async function findMachineProcesses(
  folders: HostFolders,
): Promise<ReadonlyMap<SessionId, readonly HostProcess[]>> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const found = await Promise.all(pids.map((pid) => lookAt(pid, folders)))
  return Map.groupBy(
    found.flatMap((entry) => entry ?? []),
    ({ sessionId }) => sessionId,
  )
}

/** Whether the process is one of this machine. */
export async function belongsTo(pid: number, sessionId: SessionId, folders: HostFolders): Promise<boolean> {
  return (await lookAt(pid, folders))?.sessionId === sessionId
}

async function lookAt(
  pid: number,
  folders: HostFolders,
): Promise<(HostProcess & { sessionId: SessionId }) | undefined> {
  const sessionId = sessionIn(await read(pid, 'cmdline'), folders)
  if (sessionId === undefined || !(await isOnHostSide(pid))) return undefined
  const process = await readProcess(pid)
  return process && { ...process, sessionId }
}

function sessionIn(commandLine: string, folders: HostFolders): SessionId | undefined {
  const start = `${machinesRuntimeFolder(folders)}/`
  if (!commandLine.includes(start)) return undefined
  for (const argument of commandLine.split('\0')) {
    const sessionId = argument.slice(start.length).split('/', 1)[0] as SessionId
    if (argument.startsWith(start) && argument === machineFolders(folders, sessionId).egress) return sessionId
  }
  return undefined
}

/**
 * A process can write what it likes into its own command line. So one counts only under our own user, and only where a
 * machine's programs cannot be: outside of machines, or as the first process of one.
 */
async function isOnHostSide(pid: number): Promise<boolean> {
  const [status, ownStatus] = await Promise.all([read(pid, 'status'), read('self', 'status')])
  const uid = /^Uid:\t(\d+)/m.exec(status)?.[1]
  const pids = namespacePids(status)
  const depth = pids.length - namespacePids(ownStatus).length
  return uid === String(process.geteuid?.()) && (depth === 0 || (depth === 1 && pids.at(-1) === '1'))
}

/** The numbers of a process, in our own pid namespace and in each one further in. */
function namespacePids(status: string): readonly string[] {
  return /^NSpid:\t(.*)$/m.exec(status)?.[1]?.split('\t') ?? []
}

async function read(pid: number | 'self', file: string): Promise<string> {
  return readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')
}
