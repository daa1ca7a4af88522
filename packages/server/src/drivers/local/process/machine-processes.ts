import { readdir } from 'node:fs/promises'
import type { MachineId } from '@berth/contract/common/ids.ts'
import type { HostFolders } from '../../../host/host-folders.ts'
import { isOnHostSide, readArguments } from '../../../host/own-processes.ts'
import { machineFolders, machinesRuntimeFolder } from '../machine-folders.ts'
import { type HostProcess, readProcess } from './host-process.ts'

/*
 * The processes of a machine outside of its sandbox: the command while it builds the machine, then bubblewrap twice,
 * outside as the waiting parent and inside as the machine's first process, whose end ends all others. Their command
 * lines contain the machine's egress folder, so the kernel's process list shows which machines exist.
 */

/** The processes of all machines of one runtime folder, whichever server started them. */
export async function findMachineProcesses(
  folders: HostFolders,
): Promise<ReadonlyMap<MachineId, readonly HostProcess[]>> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const found = await Promise.all(pids.map((pid) => lookAt(pid, folders)))
  return Map.groupBy(
    found.flatMap((entry) => entry ?? []),
    ({ machineId }) => machineId,
  )
}

/** Whether the process is one of this machine. */
export async function belongsTo(pid: number, machineId: MachineId, folders: HostFolders): Promise<boolean> {
  return (await lookAt(pid, folders))?.machineId === machineId
}

async function lookAt(
  pid: number,
  folders: HostFolders,
): Promise<(HostProcess & { machineId: MachineId }) | undefined> {
  const machineId = machineIn(await readArguments(pid), folders)
  if (machineId === undefined || !(await isOnHostSide(pid))) return undefined
  const process = await readProcess(pid)
  return process && { ...process, machineId }
}

function machineIn(args: readonly string[], folders: HostFolders): MachineId | undefined {
  const start = `${machinesRuntimeFolder(folders)}/`
  for (const argument of args) {
    const machineId = argument.slice(start.length).split('/', 1)[0] as MachineId
    if (argument.startsWith(start) && argument === machineFolders(folders, machineId).egress) return machineId
  }
  return undefined
}
