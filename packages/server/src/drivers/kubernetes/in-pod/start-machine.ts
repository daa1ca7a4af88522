import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { inPod } from '@berth/contract/agent/machine/machine-pod.ts'
import type { MachineId } from '@berth/contract/common/ids.ts'
import { systemFolders } from '../../../host/system-folders.ts'
import type { MachineSpec } from '../../driver.ts'
import { machineFolders } from '../../local/machine-folders.ts'
import type { HostDirectories } from '../../local/sandbox/host-directories.ts'
import { limitsOf, userInNamespace } from '../../local/sandbox/launch-machine.ts'
import { machineCommand } from '../../local/sandbox/machine-command.ts'
import { inMachine, makeDiskFolder, writeMachineFiles } from '../../local/sandbox/machine-files.ts'
import { imageFiles } from './image-files.ts'
import { supervisorCommand } from './supervisor.ts'

/*
 * The entry program of a machine's container. The machine in it is the same sandbox as on a single host, created by the
 * same code as for an ordinary user: a separate network that leads only to egress, and a view of the disk without files
 * of the container. At the end, it replaces itself with the supervisor, which needs less memory than Node.js.
 */

const machineId = 'pod' as MachineId
const spec = JSON.parse(await readFile(inPod.spec, 'utf8')) as MachineSpec
const inVolume = machineFolders({ data: inPod.machine, runtime: join(inPod.machine, 'runtime') }, machineId)
const folders = { ...inVolume, egress: inPod.egress, egressSocket: join(inPod.egress, 'egress.sock') }
await mkdir(folders.data, { recursive: true, mode: 0o700 })
await writeMachineFiles(folders, spec, userInNamespace)
await makeDiskFolder(folders, userInNamespace)

const { appPackagesFolder } = imageFiles
const directories: HostDirectories = {
  systemFolders: await systemFolders(),
  node: process.execPath,
  programs: imageFiles.programs,
  appPackages: Object.fromEntries(
    (await packagesIn(appPackagesFolder)).map((name) => [name, join(appPackagesFolder, name)]),
  ),
  timeZoneFile: undefined,
  network: imageFiles.network,
  seccompFilter: imageFiles.seccompFilter,
}
const { program, args } = machineCommand({
  folders,
  directories,
  user: userInNamespace,
  memoryBytes: limitsOf(spec.memory).memoryBytes,
  hasDiskImage: false,
  isApp: spec.isApp ?? false,
  gpuGroups: undefined,
  groups: [],
  command: [inMachine.node, inMachine.agent, inMachine.agentConfig],
})
const [supervisor = '', ...options] = supervisorCommand({
  policiesFolder: folders.policies,
  seccompFilter: imageFiles.seccompFilter,
  command: [program, ...args],
})
const environment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' }
process.execve?.(supervisor, [supervisor, ...options], environment)

async function packagesIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch(() => [])
  const scoped = names.filter((name) => name.startsWith('@'))
  const inScopes = await Promise.all(
    scoped.map(async (scope) => (await readdir(join(folder, scope))).map((name) => `${scope}/${name}`)),
  )
  return [...names.filter((name) => !scoped.includes(name)), ...inScopes.flat()]
}
