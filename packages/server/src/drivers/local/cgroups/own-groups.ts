import { readFile } from 'node:fs/promises'

/** Where a control group hierarchy is mounted, and the group of a process in it. */
export interface OwnGroup {
  readonly version: 1 | 2
  readonly mount: string
  /** Below the mount. `/` is its root. */
  readonly path: string
  /**
   * For version 1, the controllers of the hierarchy. Empty for version 2, which has all controllers that version 1 does
   * not use.
   */
  readonly controllers: readonly string[]
}

/** The groups of a process, as seen from here. Empty when the process is gone. */
export async function groupsOf(pid: number | 'self'): Promise<readonly OwnGroup[]> {
  const [mounts, own] = await Promise.all([
    readFile('/proc/self/mountinfo', 'utf8'),
    readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => ''),
  ])
  return ownGroups(mounts, own)
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

/** A container may mount only a part of a hierarchy. The mount then shows the part below its root. */
function below(root: string, path: string): string | undefined {
  if (root === '/') return path
  if (path === root) return '/'
  return path.startsWith(`${root}/`) ? path.slice(root.length) : undefined
}
