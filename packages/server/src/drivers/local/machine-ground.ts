import { mkdir, realpath, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostFolders } from '../../host/host-folders.ts'
import { systemFolders } from '../../host/system-folders.ts'
import { type AgentPrograms, bundleAgent } from './agent-bundle.ts'
import { seccompFilter } from './seccomp-filter.ts'

/** What is the same for all machines of a driver. */
export interface MachineGround {
  /** Arguments of bubblewrap that show the system's programs. */
  readonly systemFolders: readonly string[]
  readonly node: string
  /** Folder of the programs. */
  readonly programs: string
  /** The host's time zone, as a file below /usr; absent on a host that does not name it so. */
  readonly timeZoneFile: string | undefined
  /** Commands for `ip -batch`. */
  readonly networkPlan: string
  /** Absent on a processor whose system calls berth does not know. */
  readonly seccompFilter: string | undefined
}

/**
 * What a machine can reach over its network: itself. With loopback alone Chromium says that it is offline, so there is
 * a pair of interfaces, both ends in the machine, and a default route into it.
 */
const networkPlan = [
  'link set lo up',
  'link add eth0 type veth peer name eth1',
  // No address that comes a second later: Chromium takes it for another network, and breaks off what it is loading.
  'link set eth0 addrgenmode none',
  'link set eth1 addrgenmode none',
  'address add 10.0.0.2/24 dev eth0',
  'link set eth1 up',
  'link set eth0 up',
  'route add default via 10.0.0.1',
  '',
].join('\n')

/** Makes the files that machines share, anew with every start of the server. */
export async function prepareGround(folders: HostFolders, programs: AgentPrograms): Promise<MachineGround> {
  const folder = join(folders.data, 'ground')
  await mkdir(folder, { recursive: true })
  const filter = seccompFilter(process.arch)
  const files = { networkPlan: join(folder, 'network'), seccompFilter: filter && join(folder, 'seccomp') }
  const [system, timeZoneFile, programsFolder] = await Promise.all([
    systemFolders(),
    findTimeZoneFile(),
    bundleAgent(programs, join(folders.data, 'agent')),
    writeFile(files.networkPlan, networkPlan),
    filter && files.seccompFilter && writeFile(files.seccompFilter, filter),
  ])
  return { systemFolders: system, timeZoneFile, node: process.execPath, programs: programsFolder, ...files }
}

async function findTimeZoneFile(): Promise<string | undefined> {
  const path = await realpath('/etc/localtime').catch(() => undefined)
  return path?.startsWith('/usr/share/zoneinfo/') ? path : undefined
}
