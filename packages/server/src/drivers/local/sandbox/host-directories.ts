import { mkdir, realpath, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type NetworkFiles, writeNetworkFiles } from '@berth/runtime/machine-network/network-command.ts'
import { type BundledPrograms, bundlePrograms, folderOfPackage } from '../../../host/bundles/program-bundle.ts'
import type { HostFolders } from '../../../host/host-folders.ts'
import { systemFolders } from '../../../host/system-folders.ts'
import { appPackages } from './agent-programs.ts'
import { seccompFilter } from './seccomp-filter.ts'

/** Folders and files of the host that all machines of a driver see or are built from. */
export interface HostDirectories {
  /** Arguments of bubblewrap that mount the system's programs. */
  readonly systemFolders: readonly string[]
  readonly node: string
  /** The folder of the programs. */
  readonly programs: string
  /** Folders of npm packages by name, for machines of apps. */
  readonly appPackages: Readonly<Record<string, string>>
  /** The host's time zone, as a file below /usr. Absent if the host does not define it that way. */
  readonly timeZoneFile: string | undefined
  readonly network: NetworkFiles
  /** Absent on a processor whose system calls berth does not know. */
  readonly seccompFilter: string | undefined
}

/** Creates the ones that belong to berth, again at every start of the server. */
export async function openHostDirectories(folders: HostFolders, programs: BundledPrograms): Promise<HostDirectories> {
  const folder = join(folders.data, 'sandbox')
  await mkdir(folder, { recursive: true })
  const filter = seccompFilter(process.arch)
  const filterFile = filter && join(folder, 'seccomp')
  const [system, timeZoneFile, programsFolder, network] = await Promise.all([
    systemFolders(),
    findTimeZoneFile(),
    bundlePrograms(programs, join(folders.data, 'agent')),
    writeNetworkFiles(folder),
    filter && filterFile && writeFile(filterFile, filter),
  ])
  return {
    systemFolders: system,
    timeZoneFile,
    node: process.execPath,
    programs: programsFolder,
    appPackages: Object.fromEntries(appPackages.map((name) => [name, folderOfPackage(name)])),
    network,
    seccompFilter: filterFile,
  }
}

async function findTimeZoneFile(): Promise<string | undefined> {
  const path = await realpath('/etc/localtime').catch(() => undefined)
  return path?.startsWith('/usr/share/zoneinfo/') ? path : undefined
}
