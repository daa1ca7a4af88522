import { constants } from 'node:fs'
import { access, mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { exists } from '@berth/runtime/files/exists.ts'
import { readProcess } from '../process/host-process.ts'
import type { Hierarchy } from './cgroups.ts'
import { groupsOf, type OwnGroup } from './own-groups.ts'

/** Of the server and its helpers, in a group that is berth's alone. */
const serverGroup = 'berth-server'

const wanted = ['memory', 'pids', 'freezer', 'cpu'] as const

/** The hierarchies in which berth may make groups for its machines. None is no error: machines then have no limits. */
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
  // Below our own group, so that limits that somebody set for berth as a whole hold for its machines too.
  const folder = join(mount, path)
  return useful.length > 0 && (await isWritable(folder)) ? { version: 1, folder, controllers: useful } : undefined
}

/**
 * In version 2 a group that has processes cannot limit groups below it. Where our own group is ours alone, as with
 * `Delegate=yes` or in a container, we go into a group below it, and machines get theirs beside that one. Elsewhere they
 * get theirs beside our own group, where whoever manages that one might take their limits away.
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

/** Whether all processes of the group are ours to move, and the group too. */
async function canLeave(folder: string): Promise<boolean> {
  const files = ['', 'cgroup.procs', 'cgroup.subtree_control'].map((name) => join(folder, name))
  if (!(await Promise.all(files.map(isWritable))).every(Boolean)) return false
  // The top of a container, which the host's own top differs from by this file.
  const isTopOfContainer =
    !(await exists(join(dirname(folder), 'cgroup.procs'))) && (await exists(join(folder, 'cgroup.type')))
  const pids = await processesIn(folder)
  return isTopOfContainer || (await Promise.all(pids.map(isOurs))).every(Boolean)
}

/** This process, and what it has started. */
async function isOurs(pid: number): Promise<boolean> {
  for (let current: number | undefined = pid; current; current = (await readProcess(current))?.parent) {
    if (current === process.pid) return true
  }
  return false
}

async function leave(folder: string): Promise<void> {
  const leaf = join(folder, serverGroup)
  await mkdir(leaf, { recursive: true })
  // Again, for those that were started meanwhile.
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
  // To move a process from one group to another takes the right to do so in the group above both.
  if (!(await isWritable(folder)) || !(await isWritable(join(folder, 'cgroup.procs')))) return undefined
  const switchedOn = join(folder, 'cgroup.subtree_control')
  for (const name of missing) {
    // Refused where the kernel or our rights forbid it, which the next line finds out.
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
