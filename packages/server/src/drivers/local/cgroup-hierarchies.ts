import { constants } from 'node:fs'
import { access, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Hierarchy } from './cgroups.ts'

/** Where a control group hierarchy is mounted, and the group of berth's own process in it. */
export interface OwnGroup {
  readonly version: 1 | 2
  readonly mount: string
  /** Below the mount; `/` is its top. */
  readonly path: string
  /** Of version 1: one hierarchy has some controllers. Empty for version 2, which has all that version 1 has not. */
  readonly controllers: readonly string[]
}

const wanted = ['memory', 'pids', 'freezer'] as const

/** The hierarchies in which berth may make groups for its machines. None is no error: machines then have no limits. */
export async function findHierarchies(): Promise<readonly Hierarchy[]> {
  const [mounts, own] = await Promise.all([
    readFile('/proc/self/mountinfo', 'utf8'),
    readFile('/proc/self/cgroup', 'utf8'),
  ])
  const groups = ownGroups(mounts, own)
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
 * Beside our own group: in version 2 a group that has processes, as ours, cannot limit groups below it. It has a second
 * merit: what ends all processes of the group, as a service manager does, leaves the machines alive.
 */
async function hierarchyV2(
  { mount, path }: OwnGroup,
  missing: Hierarchy['controllers'],
): Promise<Hierarchy | undefined> {
  const folder = join(mount, path === '/' ? path : dirname(path))
  // To move a process from one group to another takes the right to do so in the group above both.
  if (missing.length === 0 || !(await isWritable(folder)) || !(await isWritable(join(folder, 'cgroup.procs'))))
    return undefined
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

/** Reads `/proc/self/mountinfo` and `/proc/self/cgroup`. */
export function ownGroups(mountinfo: string, ownCgroups: string): readonly OwnGroup[] {
  const mounts = mountinfo.split('\n').flatMap((line) => parseMount(line) ?? [])
  return ownCgroups
    .trim()
    .split('\n')
    .flatMap((line) => {
      const [, names = '', ...rest] = line.split(':')
      const controllers = names === '' ? [] : names.split(',')
      const version = names === '' ? 2 : 1
      const mount = mounts.find(
        (candidate) => candidate.version === version && controllers.every((name) => candidate.options.includes(name)),
      )
      const path = mount && below(mount.root, rest.join(':'))
      return path === undefined ? [] : [{ version, mount: mount?.point ?? '', path, controllers } as const]
    })
}

/** `42 31 0:27 /root /mount/point rw shared:7 - cgroup source rw,memory` */
function parseMount(
  line: string,
): { version: 1 | 2; root: string; point: string; options: readonly string[] } | undefined {
  const [front = '', back = ''] = line.split(' - ')
  const [type = '', , options = ''] = back.split(' ')
  const [, , , root = '', point = ''] = front.split(' ')
  if (type !== 'cgroup' && type !== 'cgroup2') return undefined
  return { version: type === 'cgroup' ? 1 : 2, root, point, options: options.split(',') }
}

/** A container may mount only its own part of a hierarchy: the mount then shows the part below its root. */
function below(root: string, path: string): string | undefined {
  if (root === '/') return path
  if (path === root) return '/'
  return path.startsWith(`${root}/`) ? path.slice(root.length) : undefined
}
