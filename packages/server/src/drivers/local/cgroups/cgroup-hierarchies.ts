import { constants } from 'node:fs'
import { access, mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { exists } from '@berth/runtime/files/exists.ts'
import { readProcess } from '../process/host-process.ts'
import type { Hierarchy } from './cgroups.ts'
import { groupsOf, type OwnGroup } from './own-groups.ts'

/** The group of the server and its helpers, which contains only berth. */
const serverGroup = 'berth-server'

const wanted = ['memory', 'pids', 'freezer', 'cpu'] as const

/** The hierarchies in which berth can create groups for its machines. With none, machines have no limits. */
export async function findHierarchies(): Promise<readonly Hierarchy[]> {
  const groups = await groupsOf('self')
  const old = await Promise.all(groups.filter(({ version }) => version === 1).map(hierarchyV1))
  const usable = old.flatMap((hierarchy) => hierarchy ?? [])
  const taken = usable.flatMap(({ controllers }) => controllers)
  const unified = groups.find(({ version }) => version === 2)
  const latest =
    unified &&
    (await hierarchyV2(
      unified,
      wanted.filter((name) => !taken.includes(name)),
    ))
  return latest ? [...usable, latest] : usable
}

async function hierarchyV1({ mount, path, controllers }: OwnGroup): Promise<Hierarchy | undefined> {
  const useful = wanted.filter((name) => controllers.includes(name))
  // Below our own group, so that limits for berth as a whole also apply to its machines.
  const folder = join(mount, path)
  return useful.length > 0 && (await isWritable(folder)) ? { version: 1, folder, controllers: useful } : undefined
}

/**
 * In version 2, a group with processes cannot limit groups below it. If our own group contains only berth, as with
 * `Delegate=yes` or in a container, the server moves to a group below it, and machines get groups next to that one.
 * Otherwise machines get groups next to our own group, where its manager might remove their limits.
 */
export async function hierarchyV2(
  { mount, path }: OwnGroup,
  missing: Hierarchy['controllers'],
): Promise<Hierarchy | undefined> {
  if (missing.length === 0) return undefined
  const own = join(mount, path)
  if (basename(own) !== serverGroup && (await canLeave(own))) {
    await leave(own)
    return switchOn(own, missing)
  }
  return switchOn(path === '/' ? own : dirname(own), missing)
}

/** Whether we may move all processes of the group, and ourselves. */
async function canLeave(folder: string): Promise<boolean> {
  const files = ['', 'cgroup.procs', 'cgroup.subtree_control'].map((name) => join(folder, name))
  if (!(await Promise.all(files.map(isWritable))).every(Boolean)) return false
  // The root group of a container has this file, unlike the root group of the host.
  const isTopOfContainer =
    !(await exists(join(dirname(folder), 'cgroup.procs'))) && (await exists(join(folder, 'cgroup.type')))
  const pids = await processesIn(folder)
  return isTopOfContainer || (await Promise.all(pids.map(isOurs))).every(Boolean)
}

/** Whether it is this process or one that it has started. */
async function isOurs(pid: number): Promise<boolean> {
  for (let current: number | undefined = pid; current; current = (await readProcess(current))?.parent) {
    if (current === process.pid) return true
  }
  return false
}

async function leave(folder: string): Promise<void> {
  const leaf = join(folder, serverGroup)
  await mkdir(leaf, { recursive: true })
  // Repeated for processes that were started meanwhile.
  for (let pids = await processesIn(folder); pids.length > 0; pids = await processesIn(folder)) {
    for (const pid of pids) {
      await writeFile(join(leaf, 'cgroup.procs'), String(pid)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ESRCH') throw error
      })
    }
  }
}

async function processesIn(folder: string): Promise<readonly number[]> {
  const text = await readFile(join(folder, 'cgroup.procs'), 'utf8')
  return text.split('\n').filter(Boolean).map(Number)
}

async function switchOn(folder: string, missing: Hierarchy['controllers']): Promise<Hierarchy | undefined> {
  // Moving a process between groups requires permission in their common parent group.
  if (!(await isWritable(folder)) || !(await isWritable(join(folder, 'cgroup.procs')))) return undefined
  const switchedOn = join(folder, 'cgroup.subtree_control')
  for (const name of missing) {
    // Fails if the kernel or our permissions forbid it. The next line checks the result.
    if (name !== 'freezer') await writeFile(switchedOn, `+${name}`).catch(() => {})
  }
  const names = (await readFile(switchedOn, 'utf8')).trim().split(/\s+/)
  return { version: 2, folder, controllers: missing.filter((name) => name === 'freezer' || names.includes(name)) }
}

async function isWritable(folder: string): Promise<boolean> {
  return access(folder, constants.W_OK).then(
    () => true,
    () => false,
  )
}
