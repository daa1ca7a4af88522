import { tmpdir } from 'node:os'
import { findHierarchies } from '../drivers/local/cgroups/cgroup-hierarchies.ts'
import { findBounds, type Hierarchy } from '../drivers/local/cgroups/cgroups.ts'
import { findReclaimObstacle, type ReclaimObstacle, readSwaps } from '../drivers/local/cgroups/memory-reclaim.ts'
import { findDiskImageProblem } from '../drivers/local/sandbox/machine-disk.ts'
import { type HostCheck, ok, type Verdict, warning } from './host-check.ts'
import { isInContainer } from './namespace-checks.ts'

/** Checks that berth can limit the resources of a session. */
export const boundChecks: readonly HostCheck[] = [
  {
    name: 'Control groups',
    run: async () => {
      const hierarchies = await findHierarchies()
      return judgeCgroups(await findBounds(hierarchies), hierarchies, await isInContainer())
    },
  },
  { name: 'Standby', run: async () => judgeFreezer((await findHierarchies()).some(hasFreezer)) },
  {
    name: 'Memory of standby',
    run: async () => {
      const memory = (await findHierarchies()).find(({ controllers }) => controllers.includes('memory'))
      return judgeStandbyMemory(await findReclaimObstacle(memory, await readSwaps()))
    },
  },
  {
    name: 'Disk of a session',
    run: async () => judgeDisk(await findDiskImageProblem(tmpdir()), await isInContainer()),
  },
]

const needed = ['memory', 'processes']

/** `bounds` are the available limits, as text. `hierarchies` are where they are set. */
export function judgeCgroups(
  bounds: readonly string[],
  hierarchies: readonly Pick<Hierarchy, 'version'>[],
  isContainer = false,
): Verdict {
  const missing = needed.filter((name) => !bounds.includes(name))
  if (missing.length === 0) {
    const versions = [...new Set(hierarchies.map(({ version }) => `v${version}`))].join(' and ')
    return ok(`${versions}, a session has limits of ${bounds.join(', ')}`)
  }
  return warning(
    `${missing.join(' and ')} of a session cannot be limited`,
    isContainer
      ? 'limit the container, which its sessions share: mem_limit and pids_limit in compose.yaml'
      : 'run berth as root, or in a group of its own: systemd-run --user --scope -p Delegate=yes ./berth serve',
  )
}

const standbyMemory: Readonly<Record<ReclaimObstacle, string>> = {
  'no swap': 'this host has no swap and no zram',
  'no control group': 'no control group counts it',
  'no support': 'this kernel cannot reclaim it, or does not count swap',
}

/** Whether the memory of sessions that are frozen for a minute is reclaimed. */
export function judgeStandbyMemory(obstacle: ReclaimObstacle | undefined): Verdict {
  if (obstacle === undefined) return ok('sessions that are frozen for a minute give their memory back to this host')
  return ok(`stays with frozen sessions, since ${standbyMemory[obstacle]}`)
}

/** `problem` is why sessions have no disk image files. */
export function judgeDisk(problem: string | undefined, isContainer = false): Verdict {
  if (problem === undefined) return ok('each has a file system of its own, and cannot write more')
  return warning(
    `${problem}: a session that writes too much is ended, but only some seconds later`,
    diskCure(process.geteuid?.() === 0, isContainer),
  )
}

function diskCure(isRoot: boolean, isContainer: boolean): string {
  if (isRoot)
    return 'apt-get install -y --no-install-recommends e2fsprogs, and allow loop devices where this is a container'
  if (isContainer) return 'keep the volume of the data folder on a disk of its own, or lower BERTH_SESSION_DISK_MIB'
  return 'run berth as root'
}

function hasFreezer({ controllers }: Hierarchy): boolean {
  return controllers.includes('freezer')
}

/** Whether an idle session can be frozen by a control group. */
export function judgeFreezer(isThere: boolean): Verdict {
  if (isThere) return ok('sessions that nobody uses are frozen by a control group')
  return ok('sessions that nobody uses are stopped by signals, since no control group can freeze them')
}
